// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Escapes text from files for one line of a message, so that a hostile name can neither forge a
/// second line nor hide the rest.
final class OneLine {
  /// A text that is cut keeps both its start and its end, since messages name a file first and the offset last.
  private static final int START_CHARACTERS = 200;

  private static final int END_CHARACTERS = 100;

  /// A whole message may be as long as this many names.
  private static final int NAMES_IN_MESSAGE = 3;

  private OneLine() {}

  /// Escapes a text, and cuts it in the middle if it is long.
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

  /// Escapes the whole text: control characters, line ends and unpaired surrogates are spelled as in Java source.
  static String escaped(String text) {
    StringBuilder line = new StringBuilder(text.length() + 8);
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (Character.isISOControl(c)
          || c == '\u2028'
          || c == '\u2029'
          || (Character.isSurrogate(c) && !paired(text, i))) {
        line.append(String.format("\\u%04x", (int) c));
      } else {
        line.append(c);
      }
    }
    return line.toString();
  }

  /// Whether a cut before `i` would split a surrogate pair.
  private static boolean splitsAPair(String text, int i) {
    return isLow(text, i) && paired(text, i);
  }

  private static boolean isLow(String text, int i) {
    return Character.isLowSurrogate(text.charAt(i));
  }

  private static boolean paired(String text, int i) {
    return Character.isHighSurrogate(text.charAt(i))
        ? i + 1 < text.length() && isLow(text, i + 1)
        : isLow(text, i) && i > 0 && Character.isHighSurrogate(text.charAt(i - 1));
  }
}
