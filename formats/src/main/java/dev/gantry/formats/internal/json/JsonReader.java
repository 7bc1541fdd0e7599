// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.util.OptionalInt;

/// Strict JSON from a section of a file, value by value, keeping none of it.
///
/// It is not a library's: loading and linking Jackson is a fifth of what a fresh JVM needs to open its first
/// file.
///
/// It draws the line where the safetensors reference (serde_json) draws it: strict UTF-8, no byte
/// order mark, no lone surrogates, no trailing anything. An error is at the byte that shows it, or
/// at the start of the value that it is about. Not thread-safe.
///
/// An object is read as `for (boolean more = json.beginObject(); more; more = json.nextMember()) {
/// json.memberName(); … }`, an array likewise.
public final class JsonReader {
  /// Arrays and objects inside each other; serde_json refuses the 128th.
  public static final int MAX_DEPTH = 127;

  /// A longer string is refused, so that no file makes one token the whole heap. Trainers' notes in
  /// `__metadata__` reach some megabytes.
  public static final int MAX_STRING_CHARACTERS = 16 * 1024 * 1024;

  /// The most entries of one file that a reader keeps: tensors, files, notes and the like. Each takes
  /// some hundred bytes of the heap, however short it is in the file: a megabyte of text would be
  /// tens of them.
  public static final int MAX_ENTRIES = 2_000_000;

  /// The most of these that may be notes, which can be shorter than all else.
  public static final int MAX_NOTES = 100_000;

  /// Fewer digits than this cannot pass the largest double.
  private static final int SURELY_FINITE_DIGITS = 300;

  /// What the next value is.
  public enum Kind {
    OBJECT,
    ARRAY,
    STRING,
    NUMBER,
    BOOLEAN,
    NULL
  }

  private enum Token {
    NONE,
    NAME,
    BEGIN_OBJECT,
    END_OBJECT,
    BEGIN_ARRAY,
    END_ARRAY,
    STRING,
    INTEGER,
    FRACTION,
    TRUE,
    FALSE,
    NULL,
    END
  }

  private final JsonBytes bytes;

  /// Of each array or object that is open, whether it is an object.
  private final boolean[] isObject = new boolean[MAX_DEPTH];

  private int depth;
  private Token token = Token.NONE;

  /// Where the token begins.
  private long begin;

  /// A name's, string's or number's characters; of a short whole number, these are in `small`.
  private String text = "";

  /// -1 where `text` has the number.
  private long small;

  private int entries;
  private int notes;

  /// @param from file offset of the section's first byte
  /// @param to file offset just past its last
  public JsonReader(FileBytes source, long from, long to) {
    bytes = new JsonBytes(source, from, to);
    begin = from;
  }

  /// The kind of the next value.
  public Kind peek() {
    if (token == Token.NONE || token == Token.NAME) {
      advance();
    }
    return switch (token) {
      case BEGIN_OBJECT -> Kind.OBJECT;
      case BEGIN_ARRAY -> Kind.ARRAY;
      case STRING -> Kind.STRING;
      case INTEGER, FRACTION -> Kind.NUMBER;
      case TRUE, FALSE -> Kind.BOOLEAN;
      case NULL -> Kind.NULL;
      case NONE, NAME, END_OBJECT, END_ARRAY, END ->
          throw new IllegalStateException("at " + token + ", which is no value");
    };
  }

  /// Makes sure that the value at hand is of a kind.
  ///
  /// @throws MalformedFileException of kind `fault`, or of the JSON's own fault where it has one
  public void require(Kind wanted, String fault, String detail) {
    if (peek() != wanted) {
      throw unwanted(fault, detail);
    }
  }

  /// Enters an object; call only where [#peek] says so. True if it has a member.
  public boolean beginObject() {
    return nextMember();
  }

  /// After a member's value: true if another member follows, false if the object has ended.
  public boolean nextMember() {
    return advance() == Token.NAME;
  }

  /// The name of the member that has begun.
  public String memberName() {
    return text;
  }

  /// Enters an array; call only where [#peek] says so. True if it has an element.
  public boolean beginArray() {
    return nextElement();
  }

  /// After an element: true if another follows, false if the array has ended.
  public boolean nextElement() {
    return advance() != Token.END_ARRAY;
  }

  /// A string; call only where [#peek] says so.
  public String string() {
    return text;
  }

  /// True or false; call only where [#peek] says so.
  public boolean flag() {
    return token == Token.TRUE;
  }

  /// A number as it is written; call only where [#peek] says so. The reference refuses those past
  /// the largest double, also where it does not use them.
  public String number() {
    if (small >= 0) {
      return Long.toString(small);
    }
    String number = text;
    boolean scaled = number.indexOf('e') >= 0 || number.indexOf('E') >= 0;
    if ((scaled || number.length() > SURELY_FINITE_DIGITS)
        && Double.isInfinite(Double.parseDouble(number))) {
      throw malformed("number-out-of-range", "a number past the largest double");
    }
    return number;
  }

  /// A whole number from 0 to 2⁶³-1, without fraction or exponent.
  ///
  /// @param noun what it counts: the kinds are `invalid-NOUN` for what is no number,
  ///     `negative-NOUN`, `fractional-NOUN` and `NOUN-too-large`
  public long count(String noun) {
    if (peek() != Kind.NUMBER) {
      throw unwanted("invalid-" + noun, "not a number");
    }
    if (small >= 0) {
      return small;
    }
    String number = number();
    if (number.startsWith("-")) {
      throw malformed("negative-" + noun, number);
    }
    if (token == Token.FRACTION) {
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
      case BOOLEAN, NULL -> {}
    }
  }

  /// Called before something of the file is kept, at its value or name.
  ///
  /// @throws MalformedFileException of kind `too-many-entries` where [#MAX_ENTRIES] were
  public void countEntry() {
    if (entries == MAX_ENTRIES) {
      throw malformed(
          "too-many-entries", "more than " + MAX_ENTRIES + " tensors, files, notes and the like");
    }
    entries++;
  }

  /// As [#countEntry], of a note.
  ///
  /// @throws MalformedFileException of kind `too-many-notes` where [#MAX_NOTES] were
  public void countNote() {
    countEntry();
    if (notes == MAX_NOTES) {
      throw malformed("too-many-notes", "more than " + MAX_NOTES + " notes in metadata");
    }
    notes++;
  }

  /// Makes sure that only whitespace is left.
  public void end() {
    if (bytes.afterWhitespace() != JsonBytes.END) {
      throw malformedAt(bytes.offset(), "trailing-characters", "more follows the end of the JSON");
    }
  }

  /// An error at the value or member name that was begun last.
  public MalformedFileException malformed(String kind, String detail) {
    return malformedAt(valueOffset(), kind, detail);
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
    return bytes.malformed(offset, kind, detail);
  }

  /// The file offset of the value or member name that was begun last.
  public long valueOffset() {
    return begin;
  }

  private Token advance() {
    if (depth == 0 && token != Token.NONE) {
      token = Token.END;
    } else if (depth == 0 || token == Token.NAME) {
      token = value(bytes.afterWhitespace());
    } else {
      token = isObject[depth - 1] ? member() : element();
    }
    return token;
  }

  /// A member's name with its colon, or the object's end.
  private Token member() {
    int next = bytes.afterWhitespace();
    begin = bytes.offset();
    if (next == '}') {
      return close(Token.END_OBJECT);
    }
    if (token != Token.BEGIN_OBJECT) {
      next = afterComma(next);
    }
    if (next != '"') {
      throw bytes.unexpected();
    }
    begin = bytes.offset();
    text = bytes.string();
    if (bytes.afterWhitespace() != ':') {
      throw bytes.unexpected();
    }
    bytes.skip();
    return Token.NAME;
  }

  private Token element() {
    int next = bytes.afterWhitespace();
    begin = bytes.offset();
    if (next == ']') {
      return close(Token.END_ARRAY);
    }
    return value(token == Token.BEGIN_ARRAY ? next : afterComma(next));
  }

  private int afterComma(int next) {
    if (next != ',') {
      throw bytes.unexpected();
    }
    long comma = bytes.offset();
    bytes.skip();
    int after = bytes.afterWhitespace();
    if (after == ']' || after == '}') {
      throw malformedAt(comma, "trailing-comma", "a comma, and nothing after it");
    }
    return after;
  }

  private Token close(Token end) {
    bytes.skip();
    depth--;
    return end;
  }

  private Token value(int first) {
    begin = bytes.offset();
    return switch (first) {
      case '{' -> open(true);
      case '[' -> open(false);
      case '"' -> {
        text = bytes.string();
        yield Token.STRING;
      }
      case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' -> aNumber();
      case 't' -> word("true", Token.TRUE);
      case 'f' -> word("false", Token.FALSE);
      case 'n' -> word("null", Token.NULL);
      default -> throw bytes.unexpected();
    };
  }

  private Token open(boolean object) {
    if (depth == MAX_DEPTH) {
      throw malformed("nesting-too-deep", "more than " + MAX_DEPTH + " arrays and objects");
    }
    isObject[depth++] = object;
    bytes.skip();
    return object ? Token.BEGIN_OBJECT : Token.BEGIN_ARRAY;
  }

  private Token aNumber() {
    small = bytes.smallNumber();
    if (small >= 0) {
      return Token.INTEGER;
    }
    text = bytes.number();
    boolean whole = text.indexOf('.') < 0 && text.indexOf('e') < 0 && text.indexOf('E') < 0;
    return whole ? Token.INTEGER : Token.FRACTION;
  }

  private Token word(String word, Token meant) {
    bytes.word(word);
    return meant;
  }

  /// The first half of a surrogate pair that stands alone, if there is one.
  public static OptionalInt loneSurrogate(String string) {
    int codePoint;
    for (int i = 0; i < string.length(); i += Character.charCount(codePoint)) {
      codePoint = string.codePointAt(i);
      if (codePoint >= Character.MIN_SURROGATE && codePoint <= Character.MAX_SURROGATE) {
        return OptionalInt.of(codePoint);
      }
    }
    return OptionalInt.empty();
  }
}
