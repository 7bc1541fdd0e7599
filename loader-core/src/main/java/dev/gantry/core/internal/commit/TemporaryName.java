package dev.gantry.core.internal.commit;

import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.regex.Pattern;

/// The names of files that are not whole yet. They begin with a dot and are the same length for
/// every target, so that none is too long for a file system that takes the target's. Thread-safe.
public final class TemporaryName {
  private static final String PREFIX = ".gantry-";
  private static final String SUFFIX = ".tmp";
  private static final int RANDOM_BYTES = 8;
  private static final Pattern PATTERN =
      Pattern.compile(
          Pattern.quote(PREFIX) + "[0-9a-f]{" + 2 * RANDOM_BYTES + "}" + Pattern.quote(SUFFIX));

  /// Not seeded: two processes must not draw the same.
  private static final SecureRandom RANDOM = new SecureRandom();

  private TemporaryName() {}

  /// A name in the target's folder that nobody else has.
  static Path beside(Path target) {
    byte[] random = new byte[RANDOM_BYTES];
    RANDOM.nextBytes(random);
    return target.resolveSibling(PREFIX + HexFormat.of().formatHex(random) + SUFFIX);
  }

  /// Whether a file has such a name: where nobody is writing, it is what a crash left.
  public static boolean is(Path file) {
    Path name = file.getFileName();
    return name != null && PATTERN.matcher(name.toString()).matches();
  }
}
