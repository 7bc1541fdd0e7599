package dev.gantry.core;

/// Text from a file made fit for one line of a message: a hostile name must not forge a second one.
final class OneLine {
  private static final int MOST_CHARACTERS = 300;

  private OneLine() {}

  static String of(String text) {
    StringBuilder line = new StringBuilder(Math.min(text.length(), MOST_CHARACTERS) + 8);
    int end = Math.min(text.length(), MOST_CHARACTERS);
    for (int i = 0; i < end; i++) {
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
    return text.length() > end ? line.append('…').toString() : line.toString();
  }

  private static boolean paired(String text, int i) {
    return Character.isHighSurrogate(text.charAt(i))
        ? i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))
        : i > 0 && Character.isHighSurrogate(text.charAt(i - 1));
  }
}
