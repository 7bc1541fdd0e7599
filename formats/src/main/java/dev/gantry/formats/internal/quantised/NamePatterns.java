// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/// Matches the names of modules with the patterns of a configuration. A hostile pattern could
/// match almost without end, so all matches together have a bound. Not thread-safe.
final class NamePatterns {
  private static final int MAX_PATTERN = 1000;

  /// The most characters that all matches may read. Each use of a pattern also counts the
  /// pattern's own characters.
  private static final long MAX_STEPS = 400_000_000;

  private final Location location;
  private long steps;

  /// @param location the configuration, which errors name
  NamePatterns(Location location) {
    this.location = location;
  }

  /// Whether the start of a name matches a pattern.
  ///
  /// @throws MalformedFileException if the pattern is no regular expression, or the bound is
  ///     reached
  boolean matches(String pattern, String name) {
    if (pattern.length() > MAX_PATTERN) {
      throw malformed(pattern.substring(0, MAX_PATTERN) + "…", "is too long");
    }
    count(pattern.length());
    try {
      return Pattern.compile(pattern).matcher(new Counted(name)).lookingAt();
    } catch (PatternSyntaxException e) {
      throw malformed(pattern, "is none: " + e.getDescription());
    } catch (StackOverflowError e) {
      // The JDK's matcher recurses for each character that a repeated group takes.
      throw malformed(pattern, "repeats a group too often");
    }
  }

  private MalformedFileException malformed(String pattern, String why) {
    return new MalformedFileException(
        location, 0, "bad-pattern", "the pattern '" + pattern + "' of modules' names " + why);
  }

  /// Counts further steps of a search among modules' names.
  ///
  /// @throws MalformedFileException if the bound is reached
  void count(int more) {
    steps += more;
    if (steps > MAX_STEPS) {
      throw new MalformedFileException(
          location, 0, "bad-pattern", "modules' names take too long to match with all patterns");
    }
  }

  /// A text that counts each character read, so that a match that takes too long fails.
  private final class Counted implements CharSequence {
    private final String text;

    Counted(String text) {
      this.text = text;
    }

    @Override
    public int length() {
      return text.length();
    }

    @Override
    public char charAt(int index) {
      count(1);
      return text.charAt(index);
    }

    @Override
    public CharSequence subSequence(int start, int end) {
      return text.subSequence(start, end);
    }

    @Override
    public String toString() {
      return text;
    }
  }
}
