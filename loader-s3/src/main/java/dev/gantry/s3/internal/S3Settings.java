// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.store.RetryLimits;
import java.net.URI;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// What the store adds to the SDK's own settings.
///
/// @param limits of one request; the idle time is of whole seconds, 2 or more for the CRT's client
record S3Settings(RetryLimits limits) {
  S3Settings {
    MisuseException.requireRange("idle seconds", limits.idle().toSeconds(), 2, Integer.MAX_VALUE);
  }

  static final S3Settings DEFAULT = new S3Settings(RetryLimits.DEFAULT);

  private static final String PATH_STYLE_PROPERTY = "gantry.s3.path-style";
  private static final String PATH_STYLE_VARIABLE = "GANTRY_S3_PATH_STYLE";

  /// Whether the bucket's name is the first part of the path rather than of the host's name: as the setting
  /// says; without one, for all hosts except those of AWS.
  ///
  /// @param host of a bucket's objects
  /// @throws MisuseException if the setting is neither true nor false
  static boolean pathStyle(URI host) {
    String property = System.getProperty(PATH_STYLE_PROPERTY);
    @Nullable String set = property == null ? System.getenv(PATH_STYLE_VARIABLE) : property;
    if (set != null) {
      return switch (set.toLowerCase(Locale.ROOT)) {
        case "true" -> true;
        case "false" -> false;
        default ->
            throw new MisuseException(
                "%s must be true or false (was %s)"
                    .formatted(property == null ? PATH_STYLE_VARIABLE : PATH_STYLE_PROPERTY, set));
      };
    }
    String name = host.getHost().toLowerCase(Locale.ROOT);
    return !name.endsWith(".amazonaws.com") && !name.endsWith(".amazonaws.com.cn");
  }
}
