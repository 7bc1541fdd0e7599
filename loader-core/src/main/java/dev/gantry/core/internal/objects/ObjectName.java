// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/// The object that a location such as `s3://bucket/key` names.
///
/// @param bucket the bucket that has the object; for Azure, the container
/// @param key the object's key, or the prefix of many keys; without the slash that follows the
///     bucket
public record ObjectName(String bucket, String key) {
  /// @throws MisuseException if the location does not name a bucket
  public static ObjectName of(Location location) {
    if (!(location instanceof Location.Remote remote)) {
      throw new MisuseException(location + " must be in a bucket");
    }
    URI uri = remote.uri();
    String form = " must be " + remote.scheme() + "://bucket/key";
    // This reads the authority and not the host, since names of old buckets may have underscores,
    // and hosts may not.
    String bucket = uri.getRawAuthority();
    if (bucket == null || bucket.contains("@") || bucket.contains(":")) {
      throw new MisuseException(location + form);
    }
    if (uri.getRawQuery() != null || uri.getRawFragment() != null) {
      throw new MisuseException(
          location + form + " without ? and # (in a key they are %3F and %23)");
    }
    String path = uri.getPath();
    return new ObjectName(bucket, path.isEmpty() ? "" : path.substring(1));
  }

  /// Does what [#of] does, and requires the location to name a single object.
  public static ObjectName ofObject(Location location) {
    ObjectName name = of(location);
    if (name.key().isEmpty() || name.key().endsWith("/")) {
      throw new MisuseException(location + " must name an object (was a bucket or a folder)");
    }
    return name;
  }

  /// Returns this name as a folder: its key ends in a slash, or is empty for a whole bucket.
  public ObjectName folder() {
    return key.isEmpty() || key.endsWith("/") ? this : new ObjectName(bucket, key + "/");
  }

  /// Returns the location of this object.
  public Location.Remote location(String scheme) {
    try {
      return new Location.Remote(new URI(scheme, bucket, "/" + key, null, null));
    } catch (URISyntaxException e) {
      throw new IllegalStateException("no URI of " + bucket + " " + key, e);
    }
  }

  /// Returns the path of a URL that names this object. The path begins with a slash.
  String path() {
    return "/" + bucket + "/" + encoded(key).replace("%2F", "/");
  }

  /// Encodes a text for a path or a query.
  static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }
}
