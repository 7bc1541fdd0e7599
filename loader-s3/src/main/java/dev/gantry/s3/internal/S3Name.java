// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import java.net.URI;

/// The object that a location names.
///
/// @param key of the object, or the beginning of many keys; without the slash behind the bucket
record S3Name(String bucket, String key) {
  /// @throws MisuseException if the location is not `s3://bucket/key`
  static S3Name of(Location location) {
    if (!(location instanceof Location.Remote remote)) {
      throw new MisuseException(location + " must be s3://bucket/key");
    }
    URI uri = remote.uri();
    // Takes the authority and not the host: old buckets have underscores in their names, and hosts
    // may not.
    String bucket = uri.getRawAuthority();
    if (bucket == null || bucket.contains("@") || bucket.contains(":")) {
      throw new MisuseException(location + " must be s3://bucket/key");
    }
    if (uri.getRawQuery() != null || uri.getRawFragment() != null) {
      throw new MisuseException(
          location + " must be s3://bucket/key without ? and # (in a key they are %3F and %23)");
    }
    String path = uri.getPath();
    return new S3Name(bucket, path.isEmpty() ? "" : path.substring(1));
  }

  /// Does what [#of] does, for a single object.
  static S3Name ofObject(Location location) {
    S3Name name = of(location);
    if (name.key().isEmpty() || name.key().endsWith("/")) {
      throw new MisuseException(location + " must name an object (was a bucket or a folder)");
    }
    return name;
  }

  /// Returns this as a folder: the key ends in a slash, unless it is empty for a whole bucket.
  S3Name folder() {
    return key.isEmpty() || key.endsWith("/") ? this : new S3Name(bucket, key + "/");
  }
}
