// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import dev.gantry.core.MisuseException;
import java.util.Collection;
import java.util.Map;
import java.util.StringJoiner;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Writes values as Python does: by `str`, by `repr`, and by `json.dumps`.
final class PythonText {
  private static final int MAX_INDENT = 16;

  private PythonText() {}

  /// Whether Python writes a value in another way than Jinjava.
  static boolean isOwn(@Nullable Object value) {
    return value instanceof Boolean || value instanceof Map || value instanceof Collection;
  }

  /// Returns what `repr(value)` gives. For all values of [#isOwn], that is also what `str` gives.
  static String repr(@Nullable Object value) {
    return switch (value) {
      case null -> None.NONE.toString();
      case Boolean truth -> truth ? "True" : "False";
      case CharSequence text -> quoted(text.toString());
      case Map<?, ?> map ->
          map.entrySet().stream()
              .map(entry -> repr(entry.getKey()) + ": " + repr(entry.getValue()))
              .collect(Collectors.joining(", ", "{", "}"));
      case Collection<?> list ->
          list.stream().map(PythonText::repr).collect(Collectors.joining(", ", "[", "]"));
      case Object other -> other.toString();
    };
  }

  private static String quoted(String text) {
    char quote = text.contains("'") && !text.contains("\"") ? '"' : '\'';
    String escaped =
        escaped(
            text,
            each ->
                switch (each) {
                  case '\n' -> "\\n";
                  case '\r' -> "\\r";
                  case '\t' -> "\\t";
                  case '\\' -> "\\\\";
                  default ->
                      each == quote
                          ? "\\" + quote
                          : each < ' ' || each == 0x7f ? "\\x%02x".formatted(each) : null;
                });
    return quote + escaped + quote;
  }

  /// @param escape returns what stands for a character; null if the character itself does
  private static String escaped(String text, IntFunction<@Nullable String> escape) {
    StringBuilder written = new StringBuilder();
    text.chars()
        .forEach(each -> {
          String escaped = escape.apply(each);
          if (escaped == null) {
            written.append((char) each);
          } else {
            written.append(escaped);
          }
        });
    return written.toString();
  }

  /// Returns what `json.dumps(value, ensure_ascii=False, indent=indent)` gives.
  ///
  /// @param indent the blanks before each value for each level; negative to write one line
  static String json(@Nullable Object value, long indent) {
    MisuseException.requireRange("indent of tojson", indent, -1, MAX_INDENT);
    return json(value, (int) indent, 1);
  }

  private static String json(@Nullable Object value, int indent, int level) {
    return switch (value) {
      case null -> "null";
      case None _ -> "null";
      case CharSequence text -> jsonText(text.toString());
      case Map<?, ?> map -> {
        StringJoiner all = members("{", "}", indent, level, map.isEmpty());
        map.forEach((name, member) ->
            all.add(jsonText(String.valueOf(name)) + ": " + json(member, indent, level + 1)));
        yield all.toString();
      }
      case Collection<?> list -> {
        StringJoiner all = members("[", "]", indent, level, list.isEmpty());
        list.forEach(each -> all.add(json(each, indent, level + 1)));
        yield all.toString();
      }
      case Object other -> other.toString();
    };
  }

  private static StringJoiner members(
      String begin, String end, int indent, int level, boolean isEmpty) {
    if (indent < 0 || isEmpty) {
      return new StringJoiner(", ", begin, end);
    }
    String line = "\n" + " ".repeat(indent * level);
    return new StringJoiner(
        "," + line, begin + line, "\n" + " ".repeat(indent * (level - 1)) + end);
  }

  private static String jsonText(String text) {
    String escaped =
        escaped(
            text,
            each ->
                switch (each) {
                  case '"' -> "\\\"";
                  case '\\' -> "\\\\";
                  case '\n' -> "\\n";
                  case '\r' -> "\\r";
                  case '\t' -> "\\t";
                  case '\b' -> "\\b";
                  case '\f' -> "\\f";
                  default -> each < ' ' ? "\\u%04x".formatted(each) : null;
                });
    return '"' + escaped + '"';
  }
}
