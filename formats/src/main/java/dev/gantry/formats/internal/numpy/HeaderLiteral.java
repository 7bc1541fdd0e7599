// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.MalformedFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Reads the dictionary in a header, `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }`.
///
/// The dictionary is a Python literal. This accepts only the forms that a header may have, and evaluates
/// nothing.
final class HeaderLiteral {
  private final NpyInput input;
  private final int start;
  private final String text;
  private final boolean allowsLongs;
  private int at;

  private @Nullable String type;
  private int typeOffset;
  private @Nullable Boolean fortranOrder;
  private @Nullable List<Long> shape;

  /// @param start the text's offset in the `.npy`
  /// @param allowsLongs whether integers may end in `L`, as Python 2 wrote them
  HeaderLiteral(NpyInput input, int start, String text, boolean allowsLongs) {
    this.input = input;
    this.start = start;
    this.text = text;
    this.allowsLongs = allowsLongs;
  }

  /// The element type's name.
  String type() {
    return Objects.requireNonNull(type);
  }

  /// The offset of that name in the text.
  int typeOffset() {
    return typeOffset;
  }

  boolean fortranOrder() {
    return Objects.requireNonNull(fortranOrder);
  }

  List<Long> shape() {
    return Objects.requireNonNull(shape);
  }

  /// @throws MalformedFileException if the text is no such dictionary
  HeaderLiteral parse() {
    skipSpace();
    if (!taken('{')) {
      throw malformed("not-a-dictionary", "the header is no dictionary");
    }
    skipSpace();
    while (!taken('}')) {
      entry();
      skipSpace();
      if (!taken(',') && peek() != '}') {
        throw malformed("not-a-literal", "a comma or } must follow");
      }
      skipSpace();
    }
    skipSpace();
    if (at < text.length()) {
      throw malformed("not-a-literal", "text follows the dictionary");
    }
    require(type, "descr");
    require(fortranOrder, "fortran_order");
    require(shape, "shape");
    return this;
  }

  private void require(@Nullable Object value, String key) {
    if (value == null) {
      throw malformedAt(0, "missing-key", "the header has no '" + key + "'");
    }
  }

  private void entry() {
    int begin = at;
    String key = string("a key");
    skipSpace();
    if (!taken(':')) {
      throw malformed("not-a-literal", "a colon must follow the key");
    }
    skipSpace();
    switch (key) {
      case "descr" -> {
        once(type, key, begin);
        typeOffset = at;
        type = typeName();
      }
      case "fortran_order" -> {
        once(fortranOrder, key, begin);
        fortranOrder = truth();
      }
      case "shape" -> {
        once(shape, key, begin);
        shape = shapeTuple();
      }
      default -> throw malformedAt(begin, "unknown-key", "the header has a key '" + key + "'");
    }
  }

  private void once(@Nullable Object seen, String key, int begin) {
    if (seen != null) {
      throw malformedAt(begin, "duplicate-key", "the header has '" + key + "' twice");
    }
  }

  private String typeName() {
    return switch (peek()) {
      case '[', '(', '{' ->
          throw malformed("structured-dtype", "the elements are records, which no tensor holds");
      default -> string("descr");
    };
  }

  private boolean truth() {
    if (takenWord("True")) {
      return true;
    }
    if (takenWord("False")) {
      return false;
    }
    throw malformed("not-a-literal", "fortran_order is neither True nor False");
  }

  private boolean takenWord(String word) {
    if (!text.startsWith(word, at)) {
      return false;
    }
    at += word.length();
    return true;
  }

  /// Reads a tuple such as `()`, `(7,)` or `(3, 5)`; `(7)` is no tuple.
  private List<Long> shapeTuple() {
    if (!taken('(')) {
      throw malformed("invalid-shape", "the shape is no tuple");
    }
    List<Long> axes = new ArrayList<>();
    boolean comma = true;
    skipSpace();
    while (!taken(')')) {
      if (!comma) {
        throw malformed("invalid-shape", "a comma must stand between two axes");
      }
      axes.add(axis());
      skipSpace();
      comma = taken(',');
      skipSpace();
    }
    if (axes.size() == 1 && !comma) {
      throw malformed("invalid-shape", "the shape is a number, and no tuple");
    }
    return axes;
  }

  private long axis() {
    int begin = at;
    boolean negative = taken('-');
    int digits = at;
    while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
      at++;
    }
    String number = text.substring(digits, at);
    if (allowsLongs && peek() == 'L') {
      at++;
    }
    if (number.isEmpty() || ".eExX_".indexOf(peek()) >= 0) {
      throw malformedAt(begin, "invalid-shape", "an axis is no integer");
    }
    if (negative) {
      throw malformedAt(begin, "negative-axis", "an axis has length -" + number);
    }
    try {
      return Long.parseLong(number);
    } catch (NumberFormatException _) {
      throw malformedAt(begin, "shape-overflow", "an axis has length " + number);
    }
  }

  private String string(String what) {
    char quote = peek();
    if (quote != '\'' && quote != '"') {
      throw malformed("not-a-literal", what + " is no string");
    }
    int end = text.indexOf(quote, at + 1);
    String value = end < 0 ? "\\" : text.substring(at + 1, end);
    if (value.indexOf('\\') >= 0) {
      throw malformed("not-a-literal", what + " is no plain string");
    }
    at = end + 1;
    return value;
  }

  private void skipSpace() {
    while (at < text.length() && " \t\r\n\f".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
  }

  private boolean taken(char wanted) {
    if (peek() != wanted) {
      return false;
    }
    at++;
    return true;
  }

  /// Returns the next character; at the text's end, one that no header contains.
  private char peek() {
    return at < text.length() ? text.charAt(at) : '\0';
  }

  private MalformedFileException malformed(String kind, String detail) {
    return malformedAt(at, kind, detail);
  }

  private MalformedFileException malformedAt(int position, String kind, String detail) {
    return input.malformed((long) start + position, kind, detail);
  }
}
