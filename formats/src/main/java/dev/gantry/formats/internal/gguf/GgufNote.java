// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.util.ArrayList;
import java.util.List;

/// The types of a note's value, in the order of their numbers in the file.
enum GgufNote {
  UINT8(1),
  INT8(1),
  UINT16(2),
  INT16(2),
  UINT32(4),
  INT32(4),
  FLOAT32(4),
  BOOL(1),
  /// The value is a length in 8 bytes, and then UTF-8.
  STRING(8),
  /// The value is a type in 4 bytes, a count in 8 bytes, and then the elements.
  ARRAY(12),
  UINT64(8),
  INT64(8),
  FLOAT64(8);

  private static final List<GgufNote> ALL = List.of(values());

  /// How many of a string's first bytes are kept.
  private static final int MAX_TEXT_BYTES = 1 << 20;

  /// The most elements of an array that is kept whole. A longer array, such as a tokenizer's,
  /// becomes a few elements and a count.
  private static final int MAX_ELEMENTS = 1024;

  private static final int SHOWN_ELEMENTS = 8;

  /// The deepest nesting of arrays.
  private static final int MAX_DEPTH = 8;

  /// The estimated heap bytes of a value that is kept, without its text.
  private static final int VALUE_BYTES = 64;

  /// The size of a value in the file, in bytes; for types of varying size, the smallest size.
  private final int bytes;

  GgufNote(int bytes) {
    this.bytes = bytes;
  }

  /// Reads a value's type.
  static GgufNote type(GgufInput input) {
    long at = input.offset();
    int number = input.int32();
    if (number < 0 || number >= ALL.size()) {
      throw input.malformed(
          at,
          "unknown-note-type",
          "a note's type is " + Integer.toUnsignedString(number) + "; it must be 0 to 12");
    }
    return ALL.get(number);
  }

  /// Reads a value as text: a number, `true` or `false`, a string, or a JSON array of these.
  String read(GgufInput input) {
    return read(input, 0);
  }

  private String read(GgufInput input, int depth) {
    input.charge(VALUE_BYTES);
    return switch (this) {
      case UINT8 -> Integer.toString(Byte.toUnsignedInt(input.int8()));
      case INT8 -> Byte.toString(input.int8());
      case UINT16 -> Integer.toString(Short.toUnsignedInt(input.int16()));
      case INT16 -> Short.toString(input.int16());
      case UINT32 -> Integer.toUnsignedString(input.int32());
      case INT32 -> Integer.toString(input.int32());
      case FLOAT32 -> Float.toString(Float.intBitsToFloat(input.int32()));
      case BOOL -> Boolean.toString(input.int8() != 0);
      case STRING -> input.text(MAX_TEXT_BYTES);
      case ARRAY -> array(input, depth);
      case UINT64 -> Long.toUnsignedString(input.int64());
      case INT64 -> Long.toString(input.int64());
      case FLOAT64 -> Double.toString(Double.longBitsToDouble(input.int64()));
    };
  }

  private static String array(GgufInput input, int depth) {
    if (depth == MAX_DEPTH) {
      throw input.malformed(
          input.offset(), "nested-too-deep", "arrays in more than " + MAX_DEPTH + " arrays");
    }
    GgufNote type = type(input);
    long count = input.count(Long.MAX_VALUE, type.bytes, "elements");
    long shown = count <= MAX_ELEMENTS ? count : SHOWN_ELEMENTS;
    List<String> elements = new ArrayList<>();
    for (long i = 0; i < count; i++) {
      if (i < shown) {
        String element = type.read(input, depth + 1);
        elements.add(type == STRING ? quoted(element) : element);
      } else if (type == STRING) {
        input.skip(input.int64());
      } else if (type == ARRAY) {
        String _ = type.read(input, depth + 1);
      } else {
        input.skip((count - i) * type.bytes);
        break;
      }
    }
    return "[" + String.join(", ", elements) + (shown < count ? ", … of " + count : "") + "]";
  }

  private static String quoted(String text) {
    return '"' + new String(JsonStringEncoder.getInstance().quoteAsString(text)) + '"';
  }
}
