// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.Variables;
import java.net.URI;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The store's own settings, in addition to those of the SDK.
///
/// @param limits the limits of one request; the idle time is in whole seconds, at least 2 for the
///     CRT client
record S3Settings(RetryLimits limits) {
  S3Settings {
    MisuseException.requireRange("idle seconds", limits.idle().toSeconds(), 2, Integer.MAX_VALUE);
  }

  static final S3Settings DEFAULT = new S3Settings(RetryLimits.DEFAULT);

  /// Whether requests are sent without a signature, for public buckets.
  ///
  /// @throws MisuseException if the setting is neither true nor false
  static boolean anonymous() {
    return flag("anonymous").orElse(false);
  }

  /// Whether this account pays for requests to buckets of others. Requester-pays buckets refuse
  /// other requests.
  ///
  /// @throws MisuseException if the setting is neither true nor false
  static boolean requesterPays() {
    return flag("requester-pays").orElse(false);
  }

  /// Whether the bucket's name is the first part of the path, and not part of the host's name.
  /// Without the setting, this is so for all hosts except those of AWS.
  ///
  /// @param host the host of a bucket's objects
  /// @throws MisuseException if the setting is neither true nor false
  static boolean pathStyle(URI host) {
    Optional<Boolean> set = flag("path-style");
    if (set.isPresent()) {
      return set.get();
    }
    String name = host.getHost().toLowerCase(Locale.ROOT);
    return !name.endsWith(".amazonaws.com") && !name.endsWith(".amazonaws.com.cn");
  }

  /// Reads a setting: the system property `gantry.s3.NAME`, else the environment variable `GANTRY_S3_NAME`.
  private static Optional<Boolean> flag(String name) {
    String property = "gantry.s3." + name;
    String variable = "GANTRY_S3_" + name.toUpperCase(Locale.ROOT).replace('-', '_');
    String given = System.getProperty(property);
    @Nullable String set = given == null ? System.getenv(variable) : given;
    return set == null
        ? Optional.empty()
        : Optional.of(Variables.flag(given == null ? variable : property, set));
  }
}
