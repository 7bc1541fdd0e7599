package dev.gantry.formats.internal;

/// Numbers by the grammar of RFC 8259, section 6, kept as text: nothing is rounded on the way.
final class JsonNumbers {
  /// A longer number is refused. No number that fits 64 bits or a double needs as many.
  static final int MAX_NUMBER_CHARACTERS = 4096;

  /// Fewer digits than this cannot pass the largest double.
  private static final int SURELY_FINITE_DIGITS = 300;

  private final ByteCursor input;
  private final StringBuilder text = new StringBuilder();

  JsonNumbers(ByteCursor input) {
    this.input = input;
  }

  /// Reads a number whose first character is next.
  String read() {
    long at = input.offset();
    text.setLength(0);
    boolean _ = optional('-', '-', at);
    if (!optional('0', '0', at)) {
      digits(at);
    }
    if (optional('.', '.', at)) {
      digits(at);
    }
    boolean scaled = optional('e', 'E', at);
    if (scaled) {
      boolean _ = optional('+', '-', at);
      digits(at);
    }
    return checked(at, scaled);
  }

  private boolean optional(char one, char other, long at) {
    int next = input.peek();
    if (next != one && next != other) {
      return false;
    }
    take(at);
    return true;
  }

  private void digits(long at) {
    if (!isDigit(input.peek())) {
      throw input.malformed(input.offset(), "invalid-number", "a digit is missing in a number");
    }
    while (isDigit(input.peek())) {
      take(at);
    }
  }

  private void take(long at) {
    if (text.length() == MAX_NUMBER_CHARACTERS) {
      throw input.malformed(
          at, "number-too-long", "a number of more than " + MAX_NUMBER_CHARACTERS + " characters");
    }
    text.append((char) input.take());
  }

  /// The reference refuses numbers past the largest double, also where it does not use them.
  private String checked(long at, boolean scaled) {
    if (isDigit(input.peek())) {
      throw input.malformed(at, "invalid-number", "a number with a leading zero");
    }
    String number = text.toString();
    if ((scaled || number.length() > SURELY_FINITE_DIGITS)
        && Double.isInfinite(Double.parseDouble(number))) {
      throw input.malformed(at, "number-out-of-range", "a number past the largest double");
    }
    return number;
  }

  private static boolean isDigit(int b) {
    return b >= '0' && b <= '9';
  }
}
