// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.npy;

import dev.gantry.core.MalformedFileException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Reads the dictionary in a header, `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }`.
///
/// The dictionary is a Python literal. This accepts only the forms that a header may have, and evaluates
/// nothing.
final class HeaderLiteral {
  private static final Pattern SPACE = Pattern.compile("[ \\t\\r\\n\\f]*");
  private static final Pattern STRING = Pattern.compile("'([^'\\\\]*)'|\"([^\"\\\\]*)\"");
  private static final Pattern TRUTH = Pattern.compile("True|False");
  private static final Pattern AXIS = Pattern.compile("-?[0-9]++(?![.\\w])");

  /// Matches the integers that Python 2 wrote.
  private static final Pattern LONG_AXIS = Pattern.compile("-?[0-9]++L?+(?![.\\w])");

  private final NpyInput input;
  private final int start;
  private final String text;
  private final Pattern axis;
  private final Matcher matcher;
  private final Set<String> keys = new HashSet<>();
  private int at;

  private String type = "";
  private int typeOffset;
  private boolean fortranOrder;
  private final List<Long> shape = new ArrayList<>();

  /// @param start the text's offset in the `.npy`
  /// @param allowsLongs whether integers may end in `L`, as Python 2 wrote them
  HeaderLiteral(NpyInput input, int start, String text, boolean allowsLongs) {
    this.input = input;
    this.start = start;
    this.text = text;
    this.axis = allowsLongs ? LONG_AXIS : AXIS;
    this.matcher = SPACE.matcher(text);
  }

  /// The element type's name.
  String type() {
    return type;
  }

  /// The offset of the element type's name in the text.
  int typeOffset() {
    return typeOffset;
  }

  boolean fortranOrder() {
    return fortranOrder;
  }

  List<Long> shape() {
    return shape;
  }

  /// @throws MalformedFileException if the text is no such dictionary
  HeaderLiteral parse() {
    require(taken('{'), at, "not-a-dictionary", "the header is not a dictionary");
    while (!taken('}')) {
      entry();
      require(taken(',') || peek() == '}', at, "not-a-literal", "a comma or } must follow");
    }
    char _ = peek();
    require(at == text.length(), at, "not-a-literal", "text follows the dictionary");
    for (String key : List.of("descr", "fortran_order", "shape")) {
      require(keys.contains(key), 0, "missing-key", "the header has no '" + key + "'");
    }
    return this;
  }

  private void entry() {
    String key = string("a key");
    int begin = matcher.start();
    require(taken(':'), at, "not-a-literal", "a colon must follow the key");
    require(keys.add(key), begin, "duplicate-key", "the header has '" + key + "' twice");
    char first = peek();
    switch (key) {
      case "descr" -> {
        require(
            "[({".indexOf(first) < 0,
            at,
            "structured-dtype",
            "the elements are records, which no tensor holds");
        typeOffset = at;
        type = string("descr");
      }
      case "fortran_order" -> {
        String words = "fortran_order is neither True nor False";
        fortranOrder = token(TRUTH, "not-a-literal", words).equals("True");
      }
      case "shape" -> readShape();
      default -> require(false, begin, "unknown-key", "the header has a key '" + key + "'");
    }
  }

  /// Reads a tuple such as `()`, `(7,)` or `(3, 5)`; `(7)` is no tuple.
  private void readShape() {
    require(taken('('), at, "invalid-shape", "the shape is not a tuple");
    boolean comma = true;
    while (!taken(')')) {
      require(comma, at, "invalid-shape", "a comma must stand between two axes");
      shape.add(axis());
      comma = taken(',');
    }
    require(shape.size() != 1 || comma, at, "invalid-shape", "the shape is a number, and no tuple");
  }

  private long axis() {
    String number = token(axis, "invalid-shape", "an axis is not an integer");
    String words = "an axis has length " + number;
    require(!number.startsWith("-"), matcher.start(), "negative-axis", words);
    try {
      return Long.parseLong(number.replace("L", ""));
    } catch (NumberFormatException _) {
      throw malformed(matcher.start(), "shape-overflow", words);
    }
  }

  private String string(String what) {
    String quoted = token(STRING, "not-a-literal", what + " is not a plain string");
    return quoted.substring(1, quoted.length() - 1);
  }

  /// Skips space, and reads a token that must match a pattern.
  private String token(Pattern wanted, String kind, String detail) {
    char _ = peek();
    require(matcher.usePattern(wanted).region(at, text.length()).lookingAt(), at, kind, detail);
    at = matcher.end();
    return matcher.group();
  }

  private boolean taken(char wanted) {
    boolean taken = peek() == wanted;
    at += taken ? 1 : 0;
    return taken;
  }

  /// Skips space, and returns the next character; at the text's end, it returns a character that
  /// no header contains.
  private char peek() {
    boolean _ = matcher.usePattern(SPACE).region(at, text.length()).lookingAt();
    at = matcher.end();
    return at < text.length() ? text.charAt(at) : '\0';
  }

  private void require(boolean fulfilled, int position, String kind, String detail) {
    if (!fulfilled) {
      throw malformed(position, kind, detail);
    }
  }

  private MalformedFileException malformed(int position, String kind, String detail) {
    return input.malformed((long) start + position, kind, detail);
  }
}
