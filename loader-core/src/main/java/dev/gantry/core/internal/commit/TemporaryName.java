// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.regex.Pattern;

/// Names of files that are not complete yet. They begin with a dot, and have the same length for
/// every target, so that no file system accepts the target's name and refuses this one. Thread-safe.
public final class TemporaryName {
  private static final String PREFIX = ".gantry-";
  private static final String SUFFIX = ".tmp";
  private static final int RANDOM_BYTES = 8;
  private static final Pattern PATTERN =
      Pattern.compile(
          Pattern.quote(PREFIX) + "[0-9a-f]{" + 2 * RANDOM_BYTES + "}" + Pattern.quote(SUFFIX));

  /// Not seeded, since two processes must not draw the same name.
  private static final SecureRandom RANDOM = new SecureRandom();

  private TemporaryName() {}

  /// A unique name in the target's folder.
  static Path beside(Path target) {
    byte[] random = new byte[RANDOM_BYTES];
    RANDOM.nextBytes(random);
    return target.resolveSibling(PREFIX + HexFormat.of().formatHex(random) + SUFFIX);
  }

  /// Whether a file has such a name: a crash left it, unless it is being written.
  public static boolean is(Path file) {
    Path name = file.getFileName();
    return name != null && PATTERN.matcher(name.toString()).matches();
  }
}
