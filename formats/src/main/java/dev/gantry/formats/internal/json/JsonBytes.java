// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/// The bytes of one section of a file, in order, through one small buffer, and the strings, numbers and
/// words that JSON makes of them. An error is at the byte that shows it. What is not UTF-8 (overlong
/// forms, surrogates, cut sequences) is refused where it begins. Not thread-safe.
final class JsonBytes {
  /// In place of a byte: the section has no more.
  static final int END = -1;

  private static final int BUFFER_BYTES = 64 * 1024;

  /// A longer number is refused. No number that fits 64 bits or a double needs as many.
  private static final int MAX_NUMBER_CHARACTERS = 4096;

  /// As many digits fit a `long`, whatever they are.
  private static final int SMALL_DIGITS = 18;

  private final FileBytes source;
  private final long from;
  private final long to;
  private final byte[] buffer;

  /// The file offset of the buffer's first byte.
  private long buffered;

  private int at;
  private int limit;

  /// @param from file offset of the section's first byte
  /// @param to file offset just past its last
  JsonBytes(FileBytes source, long from, long to) {
    this.source = source;
    this.from = from;
    this.to = to;
    this.buffer = new byte[(int) Math.min(BUFFER_BYTES, to - from)];
    this.buffered = from;
  }

  /// The file offset of the next byte.
  long offset() {
    return buffered + at;
  }

  /// The next byte, which stays the next one; or [#END].
  private int peek() {
    if (at == limit && !fill()) {
      return END;
    }
    return buffer[at] & 0xff;
  }

  private boolean fill() {
    long next = offset();
    int count = (int) Math.min(buffer.length, to - next);
    if (count == 0) {
      return false;
    }
    source.readFully(ByteBuffer.wrap(buffer, 0, count), next);
    buffered = next;
    at = 0;
    limit = count;
    return true;
  }

  /// Goes past the next byte.
  void skip() {
    at++;
  }

  /// Goes past whitespace. Returns the next byte, which stays the next one; or [#END].
  int afterWhitespace() {
    int next = peek();
    while (next == ' ' || next == '\n' || next == '\r' || next == '\t') {
      at++;
      next = peek();
    }
    return next;
  }

  /// A string, of which the opening quote is the next byte.
  String string() {
    long begin = offset();
    at++;
    // Most strings are ASCII without escapes, and lie in the buffer as a whole.
    for (int end = at; end < limit; end++) {
      byte next = buffer[end];
      if (next == '"') {
        String text = new String(buffer, at, end - at, StandardCharsets.ISO_8859_1);
        at = end + 1;
        return bounded(text.length(), text);
      }
      if (next < ' ' || next == '\\') {
        break;
      }
    }
    StringBuilder text = new StringBuilder();
    boolean escapedSurrogate = false;
    for (int next = peek(); next != '"'; next = peek()) {
      if (next == END) {
        throw malformed(to, "unexpected-end", "a string without its closing quote");
      } else if (next == '\\') {
        char escaped = escape();
        escapedSurrogate |= Character.isSurrogate(escaped);
        text.append(escaped);
      } else if (next < ' ') {
        throw malformed(offset(), "control-character", String.format("\\u%04x in a string", next));
      } else {
        text.appendCodePoint(codePoint());
      }
      text = bounded(text.length(), text);
    }
    at++;
    String string = text.toString();
    // Bytes make no half of a pair.
    if (escapedSurrogate) {
      JsonReader.loneSurrogate(string)
          .ifPresent(lone -> {
            throw malformed(
                begin, "lone-surrogate", String.format("\\u%04x without its other half", lone));
          });
    }
    return string;
  }

  private <T> T bounded(int length, T text) {
    if (length > JsonReader.MAX_STRING_CHARACTERS) {
      throw malformed(
          offset(),
          "string-too-long",
          "a string of more than " + JsonReader.MAX_STRING_CHARACTERS + " characters");
    }
    return text;
  }

  /// What follows a backslash, which is the next byte.
  private char escape() {
    at++;
    int kind = peek();
    char escaped =
        switch (kind) {
          case '"', '\\', '/' -> (char) kind;
          case 'b' -> '\b';
          case 'f' -> '\f';
          case 'n' -> '\n';
          case 'r' -> '\r';
          case 't' -> '\t';
          case 'u' -> 0;
          default -> throw badEscape(kind);
        };
    at++;
    if (kind != 'u') {
      return escaped;
    }
    int unit = 0;
    for (int i = 0; i < 4; i++) {
      int digit = peek();
      int value = digit < 0x80 ? Character.digit(digit, 16) : -1;
      if (value < 0) {
        throw badEscape(digit);
      }
      unit = unit << 4 | value;
      at++;
    }
    return (char) unit;
  }

  private MalformedFileException badEscape(int found) {
    return found == END
        ? malformed(to, "unexpected-end", "an escape that breaks off")
        : malformed(offset(), "invalid-escape", "a backslash, and no escape after it");
  }

  /// The next character, of one to four bytes of UTF-8.
  private int codePoint() {
    int first = peek();
    if (first < 0x80) {
      at++;
      return first;
    }
    long begin = offset();
    at++;
    // The least that a sequence of its length may say, so that each character has one form only.
    int least = first >= 0xf0 ? 0x10000 : first >= 0xe0 ? 0x800 : 0x80;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    int point = first & (0x3f >> more);
    boolean whole = first >= 0xc2 && first <= 0xf4;
    for (int i = 0; whole && i < more; i++) {
      int next = peek();
      whole = next >= 0x80 && next < 0xc0;
      point = point << 6 | (next & 0x3f);
      at++;
    }
    boolean surrogate = point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE;
    if (!whole || point < least || surrogate || point > Character.MAX_CODE_POINT) {
      throw malformed(begin, "invalid-utf8", "bytes that are not UTF-8");
    }
    return point;
  }

  /// A whole number of few digits, which begins at the next byte; -1, and nothing is read, if there is
  /// another kind of number or one that breaks a rule.
  long smallNumber() {
    long value = 0;
    int end = at;
    while (end < limit && buffer[end] >= '0' && buffer[end] <= '9') {
      if (end - at == SMALL_DIGITS) {
        return -1;
      }
      value = 10 * value + (buffer[end] - '0');
      end++;
    }
    // A digit at the buffer's end may have others behind it.
    if (end == limit || end == at || (buffer[at] == '0' && end - at > 1)) {
      return -1;
    }
    int next = buffer[end];
    if (next == '.' || next == 'e' || next == 'E') {
      return -1;
    }
    at = end;
    return value;
  }

  /// Any number, which begins at the next byte, as it is written.
  String number() {
    StringBuilder number = new StringBuilder();
    if (peek() == '-') {
      take(number);
    }
    if (peek() == '0') {
      long zero = offset();
      take(number);
      if (isDigit(peek())) {
        throw malformed(zero, "invalid-number", "a zero before a number's digits");
      }
    } else {
      digits(number);
    }
    if (peek() == '.') {
      take(number);
      digits(number);
    }
    if (peek() == 'e' || peek() == 'E') {
      take(number);
      if (peek() == '+' || peek() == '-') {
        take(number);
      }
      digits(number);
    }
    return number.toString();
  }

  private void digits(StringBuilder number) {
    if (!isDigit(peek())) {
      throw malformed(offset(), "invalid-number", "a number that breaks off before a digit");
    }
    while (isDigit(peek())) {
      take(number);
    }
  }

  private static boolean isDigit(int next) {
    return next >= '0' && next <= '9';
  }

  private void take(StringBuilder number) {
    if (number.length() == MAX_NUMBER_CHARACTERS) {
      throw malformed(
          offset(),
          "number-too-long",
          "a number of more than " + MAX_NUMBER_CHARACTERS + " characters");
    }
    number.append((char) peek());
    at++;
  }

  /// Goes past a word, of which the first letter is the next byte.
  void word(String word) {
    for (int i = 0; i < word.length(); i++) {
      if (peek() != word.charAt(i)) {
        throw noWord();
      }
      at++;
    }
    if (isLetter(peek())) {
      throw noWord();
    }
  }

  /// The error that a word is which JSON does not have: its last letter shows it.
  private MalformedFileException noWord() {
    while (isLetter(peek())) {
      at++;
    }
    return malformed(offset() - 1, "invalid-json", "a word that is none of JSON's");
  }

  private static boolean isLetter(int next) {
    return next > ' ' && next < 0x80 && Character.isJavaIdentifierPart(next);
  }

  /// The error that the next byte is.
  MalformedFileException unexpected() {
    int next = peek();
    if (next == END) {
      return malformed(to, "unexpected-end", "the JSON breaks off");
    }
    if (isLetter(next)) {
      return noWord();
    }
    long begin = offset();
    if (next < ' ') {
      return malformed(begin, "control-character", String.format("\\u%04x between values", next));
    }
    int point = codePoint();
    return point == '\uFEFF' && begin == from
        ? malformed(from, "byte-order-mark", "JSON must not begin with a byte order mark")
        : malformed(begin, "invalid-json", "a character that cannot be here");
  }

  MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(source.file(), offset, kind, detail);
  }
}
