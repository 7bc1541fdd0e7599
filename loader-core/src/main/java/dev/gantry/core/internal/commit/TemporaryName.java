// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.regex.Pattern;

/// Names files that are not complete yet. The names begin with a dot and all have the same length,
/// so that a long target name does not make a temporary name that the file system refuses.
/// Thread-safe.
public final class TemporaryName {
  private static final String PREFIX = ".gantry-";
  private static final String SUFFIX = ".tmp";
  private static final String HELD_SUFFIX = ".held.tmp";
  private static final int RANDOM_BYTES = 8;
  private static final Pattern HELD = pattern(HELD_SUFFIX);
  private static final Pattern PATTERN = pattern(SUFFIX);

  /// The random source of names. It has no fixed seed, since two processes must not choose the
  /// same name.
  private static final SecureRandom RANDOM = new SecureRandom();

  private TemporaryName() {}

  private static Pattern pattern(String suffix) {
    return Pattern.compile(
        Pattern.quote(PREFIX) + "[0-9a-f]{" + 2 * RANDOM_BYTES + "}" + Pattern.quote(suffix));
  }

  /// Returns a unique name in the target's folder.
  ///
  /// @param held whether the writer holds the file's lock until the file has its own name
  static Path beside(Path target, boolean held) {
    byte[] random = new byte[RANDOM_BYTES];
    RANDOM.nextBytes(random);
    return target.resolveSibling(
        PREFIX + HexFormat.of().formatHex(random) + (held ? HELD_SUFFIX : SUFFIX));
  }

  /// Whether a file has a temporary name. Such a file is being written, or a crash left it.
  public static boolean is(Path file) {
    return isHeld(file) || matches(PATTERN, file);
  }

  /// Whether a file has the name of a temporary file whose writer holds its lock. If the lock of
  /// such a file is free, a crash left the file.
  static boolean isHeld(Path file) {
    return matches(HELD, file);
  }

  private static boolean matches(Pattern pattern, Path file) {
    Path name = file.getFileName();
    return name != null && pattern.matcher(name.toString()).matches();
  }
}
