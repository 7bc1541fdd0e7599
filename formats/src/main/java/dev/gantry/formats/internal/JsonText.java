package dev.gantry.formats.internal;

import dev.gantry.core.MalformedFileException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// The inside of JSON strings: strict UTF-8 (Unicode 16, table 3-7) and escapes (RFC 8259, section
/// 7), where an escaped surrogate must be one of a pair.
final class JsonText {
  /// A longer string is refused, so that no file makes one token the whole heap. Trainers' notes in
  /// `__metadata__` reach some megabytes.
  static final int MAX_STRING_BYTES = 16 * 1024 * 1024;

  private final ByteCursor input;
  private byte[] text = new byte[256];
  private int length;

  JsonText(ByteCursor input) {
    this.input = input;
  }

  /// Reads up to and with the closing quote; the opening one is consumed already.
  String read() {
    length = 0;
    while (true) {
      length += input.takePlain(text, length);
      long at = input.offset();
      int first = input.take();
      if (first == '"') {
        return new String(text, 0, length, StandardCharsets.UTF_8);
      } else if (first == ByteCursor.END) {
        throw input.malformed(at, "unexpected-end", "the JSON ends inside a string");
      } else if (first < 0x20) {
        throw input.malformed(
            at, "control-character", String.format("byte 0x%02x inside a string", first));
      } else if (first == '\\') {
        escape(at);
      } else if (first < 0x80) {
        put(first, at);
      } else {
        sequence(first, at);
      }
    }
  }

  private void sequence(int first, long at) {
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4) {
      throw notUtf8(at);
    }
    put(first, at);
    for (int i = 0; i < more; i++) {
      int following = input.peek();
      // The second byte's narrower ranges keep out overlong forms, surrogates, and what lies past
      // U+10FFFF.
      int least = i > 0 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
      int most = i > 0 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
      if (following < least || following > most) {
        throw notUtf8(at);
      }
      put(input.take(), at);
    }
  }

  private MalformedFileException notUtf8(long at) {
    return input.malformed(at, "invalid-utf8", "bytes that are not UTF-8");
  }

  private void escape(long at) {
    int escaped = input.take();
    switch (escaped) {
      case '"', '\\', '/' -> put(escaped, at);
      case 'b' -> put('\b', at);
      case 'f' -> put('\f', at);
      case 'n' -> put('\n', at);
      case 'r' -> put('\r', at);
      case 't' -> put('\t', at);
      case 'u' -> putCodePoint(codePoint(at), at);
      case ByteCursor.END ->
          throw input.malformed(at, "unexpected-end", "the JSON ends inside an escape");
      default ->
          throw input.malformed(at, "invalid-escape", "a backslash before no escape's letter");
    }
  }

  private int codePoint(long at) {
    char first = hexadecimal(at);
    if (!Character.isSurrogate(first)) {
      return first;
    }
    if (Character.isHighSurrogate(first) && input.peek() == '\\') {
      input.take();
      if (input.peek() == 'u') {
        input.take();
        char second = hexadecimal(at);
        if (Character.isLowSurrogate(second)) {
          return Character.toCodePoint(first, second);
        }
      }
    }
    throw input.malformed(
        at, "lone-surrogate", String.format("\\u%04x without its other half", (int) first));
  }

  private char hexadecimal(long at) {
    int value = 0;
    for (int i = 0; i < 4; i++) {
      int digit = Character.digit(input.peek(), 16);
      if (digit < 0) {
        throw input.malformed(at, "invalid-escape", "\\u without four hexadecimal digits");
      }
      input.take();
      value = value << 4 | digit;
    }
    return (char) value;
  }

  private void putCodePoint(int codePoint, long at) {
    for (byte b : Character.toString(codePoint).getBytes(StandardCharsets.UTF_8)) {
      put(b, at);
    }
  }

  private void put(int b, long at) {
    if (length == text.length) {
      if (length >= MAX_STRING_BYTES) {
        throw input.malformed(
            at, "string-too-long", "a string of more than " + MAX_STRING_BYTES + " bytes");
      }
      text = Arrays.copyOf(text, Math.min(2 * length, MAX_STRING_BYTES));
    }
    text[length++] = (byte) b;
  }
}
