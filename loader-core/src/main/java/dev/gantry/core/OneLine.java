// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.Locale;
import java.util.regex.Pattern;

/// Escapes text from files for one line of a message, so that a hostile name can neither forge a
/// second line nor hide the text that follows it.
final class OneLine {
  /// A text that is cut keeps both its start and its end, since messages name a file first and the offset last.
  private static final int START_CHARACTERS = 200;

  private static final int END_CHARACTERS = 100;

  /// A whole message may be as long as this many names.
  private static final int NAMES_IN_MESSAGE = 3;

  /// The ranges at the end turn the direction of writing, by which a terminal shows later text
  /// before earlier text.
  private static final Pattern ESCAPED =
      Pattern.compile(
          "[\\p{Cc}\\p{Cs}\\u2028\\u2029\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]");

  private OneLine() {}

  /// Escapes a text, and cuts a long text in the middle.
  static String of(String text) {
    return of(text, 1);
  }

  /// Does the same as [#of] for a whole message, which may be longer.
  static String ofMessage(String text) {
    return of(text, NAMES_IN_MESSAGE);
  }

  private static String of(String text, int times) {
    int first = times * START_CHARACTERS;
    int last = times * END_CHARACTERS;
    if (text.length() <= first + last) {
      return escaped(text);
    }
    String start = text.substring(0, first - (splitsAPair(text, first) ? 1 : 0));
    int end = text.length() - last;
    return escaped(start) + '…' + escaped(text.substring(splitsAPair(text, end) ? end + 1 : end));
  }

  /// Escapes the whole text: control characters, line ends, changes of direction and unpaired
  /// surrogates are spelled as in Java source.
  static String escaped(String text) {
    return ESCAPED
        .matcher(text)
        .replaceAll(
            found -> "\\\\" + String.format(Locale.ROOT, "u%04x", found.group().codePointAt(0)));
  }

  /// Whether a cut before `i` would split a surrogate pair.
  private static boolean splitsAPair(String text, int i) {
    return Character.isSurrogatePair(text.charAt(i - 1), text.charAt(i));
  }
}
