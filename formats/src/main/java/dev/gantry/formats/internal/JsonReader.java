package dev.gantry.formats.internal;

import dev.gantry.core.MalformedFileException;

/// A strict JSON reader that pulls values one by one from a section of a file, keeping none of it.
///
/// It draws the line where the safetensors reference (serde_json) draws it: strict UTF-8, no byte
/// order mark, no lone surrogates, no trailing anything. Each rule that a file can break has a
/// kind of its own, at the offset of the byte that breaks it. Not thread-safe.
///
/// An object is read as `for (boolean more = json.beginObject(); more; more = json.nextMember()) {
/// json.memberName(); … }`, an array likewise.
public final class JsonReader {
  /// Arrays and objects inside each other; serde_json refuses the 128th.
  public static final int MAX_DEPTH = 127;

  /// What the next value is.
  public enum Kind {
    OBJECT,
    ARRAY,
    STRING,
    NUMBER,
    BOOLEAN,
    NULL
  }

  private final ByteCursor input;
  private final JsonText text;
  private final JsonNumbers numbers;
  private int depth;
  private long valueOffset;

  /// @param from file offset of the section's first byte
  /// @param to file offset just past its last
  /// @throws MalformedFileException of kind `byte-order-mark` if it begins with one
  public JsonReader(FileBytes source, long from, long to) {
    input = new ByteCursor(source, from, to);
    text = new JsonText(input);
    numbers = new JsonNumbers(input);
    valueOffset = from;
    if (input.peek() == 0xEF) {
      throw input.malformed(from, "byte-order-mark", "JSON must not begin with a byte order mark");
    }
  }

  /// The kind of the next value, by its first byte.
  public Kind peek() {
    int first = significant();
    valueOffset = input.offset();
    return switch (first) {
      case '{' -> Kind.OBJECT;
      case '[' -> Kind.ARRAY;
      case '"' -> Kind.STRING;
      case 't', 'f' -> Kind.BOOLEAN;
      case 'n' -> Kind.NULL;
      case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' -> Kind.NUMBER;
      default -> throw unexpected(first, "a value");
    };
  }

  /// Enters an object; call only where [#peek] says so. True if it has a member.
  public boolean beginObject() {
    return begin('}');
  }

  /// After a member's value: true if another member follows, false if the object has ended.
  public boolean nextMember() {
    return next('}');
  }

  /// A member's name, with the colon behind it.
  public String memberName() {
    int first = significant();
    if (first != '"') {
      throw unexpected(first, "a member's name");
    }
    valueOffset = input.offset();
    input.take();
    String name = text.read();
    int separator = significant();
    if (separator != ':') {
      throw unexpected(separator, "a colon");
    }
    input.take();
    return name;
  }

  /// Enters an array; call only where [#peek] says so. True if it has an element.
  public boolean beginArray() {
    return begin(']');
  }

  /// After an element: true if another follows, false if the array has ended.
  public boolean nextElement() {
    return next(']');
  }

  /// A string; call only where [#peek] says so.
  public String string() {
    input.take();
    return text.read();
  }

  /// A number as it is written; call only where [#peek] says so.
  public String number() {
    return numbers.read();
  }

  /// A whole number from 0 to 2⁶³-1, without fraction or exponent.
  ///
  /// @param noun what it counts: the kinds are `invalid-NOUN` for what is no number,
  ///     `negative-NOUN`, `fractional-NOUN` and `NOUN-too-large`
  public long count(String noun) {
    if (peek() != Kind.NUMBER) {
      throw unwanted("invalid-" + noun, "not a number");
    }
    String number = number();
    if (number.startsWith("-")) {
      throw malformed("negative-" + noun, number);
    }
    if (number.chars().anyMatch(c -> c == '.' || c == 'e' || c == 'E')) {
      throw malformed("fractional-" + noun, number + " is not written as a whole number");
    }
    try {
      return Long.parseLong(number);
    } catch (NumberFormatException _) {
      throw malformed(noun + "-too-large", number + " is past 2⁶³-1");
    }
  }

  /// Reads past the next value, whatever it is, as strictly as if it were wanted.
  public void skip() {
    switch (peek()) {
      case OBJECT -> {
        for (boolean more = beginObject(); more; more = nextMember()) {
          memberName();
          skip();
        }
      }
      case ARRAY -> {
        for (boolean more = beginArray(); more; more = nextElement()) {
          skip();
        }
      }
      case STRING -> string();
      case NUMBER -> number();
      case BOOLEAN -> literal(input.peek() == 't' ? "true" : "false");
      case NULL -> literal("null");
    }
  }

  /// Makes sure that only whitespace is left.
  public void end() {
    if (significant() != ByteCursor.END) {
      throw input.malformed(
          input.offset(), "trailing-characters", "more follows the end of the JSON");
    }
  }

  /// An error at the value or member name that was begun last.
  public MalformedFileException malformed(String kind, String detail) {
    return malformedAt(valueOffset, kind, detail);
  }

  /// An error about the next value as a whole, such as its kind. If that is no JSON, this throws:
  /// what cannot be read comes before what is not wanted.
  public MalformedFileException unwanted(String kind, String detail) {
    peek();
    MalformedFileException unwanted = malformed(kind, detail);
    skip();
    return unwanted;
  }

  /// An error at a file offset that [#valueOffset] gave earlier.
  public MalformedFileException malformedAt(long offset, String kind, String detail) {
    return input.malformed(offset, kind, detail);
  }

  /// The file offset of the value or member name that was begun last.
  public long valueOffset() {
    return valueOffset;
  }

  private boolean begin(char close) {
    if (++depth > MAX_DEPTH) {
      throw input.malformed(
          input.offset(), "nesting-too-deep", "more than " + MAX_DEPTH + " levels");
    }
    input.take();
    if (significant() != close) {
      return true;
    }
    return leave();
  }

  private boolean next(char close) {
    int separator = significant();
    if (separator == close) {
      return leave();
    }
    if (separator != ',') {
      throw unexpected(separator, "a comma or '" + close + "'");
    }
    long comma = input.offset();
    input.take();
    if (significant() == close) {
      throw input.malformed(comma, "trailing-comma", "a comma before '" + close + "'");
    }
    return true;
  }

  private boolean leave() {
    input.take();
    depth--;
    return false;
  }

  private void literal(String word) {
    for (int i = 0; i < word.length(); i++) {
      int next = input.peek();
      if (next != word.charAt(i)) {
        throw unexpected(next, "'" + word + "'");
      }
      input.take();
    }
  }

  private int significant() {
    while (true) {
      int next = input.peek();
      if (next != ' ' && next != '\n' && next != '\r' && next != '\t') {
        return next;
      }
      input.take();
    }
  }

  private MalformedFileException unexpected(int found, String expected) {
    if (found == ByteCursor.END) {
      return input.malformed(
          input.offset(), "unexpected-end", "the JSON ends where " + expected + " is expected");
    }
    String shown = found >= 0x20 && found < 0x7F ? "'" + (char) found + "'" : "byte " + found;
    return input.malformed(
        input.offset(), "invalid-json", shown + " where " + expected + " is expected");
  }
}
