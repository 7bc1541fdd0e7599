// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import com.hubspot.jinjava.el.JinjavaInterpreterResolver;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import jinjava.javax.el.CompositeELResolver;
import jinjava.javax.el.ELContext;
import org.jspecify.annotations.Nullable;

/// The resolver of Jinjava's expressions, with the methods of Python's strings and dictionaries that chat templates call.
final class PythonMethods extends CompositeELResolver {
  PythonMethods() {
    add(JinjavaInterpreterResolver.DEFAULT_RESOLVER_READ_WRITE);
  }

  /// The characters that are white space to Python.
  private static final String BLANKS =
      "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

  @Override
  public @Nullable Object invoke(
      ELContext context,
      @Nullable Object base,
      Object method,
      Class<?> @Nullable [] types,
      @Nullable Object @Nullable [] arguments) {
    @Nullable Object[] given = arguments == null ? new @Nullable Object[0] : arguments;
    Object result =
        switch (base) {
          case CharSequence text -> ofText(text.toString(), method.toString(), given);
          case Map<?, ?> map -> ofMap(map, method.toString(), given);
          case null, default -> null;
        };
    if (result != null) {
      context.setPropertyResolved(true);
      return result;
    }
    return super.invoke(context, base, method, types, arguments);
  }

  private static @Nullable Object ofText(String text, String method, @Nullable Object... given) {
    String first = given.length == 0 ? null : String.valueOf(given[0]);
    return switch (method) {
      case "strip" -> stripped(text, first, true, true);
      case "lstrip" -> stripped(text, first, true, false);
      case "rstrip" -> stripped(text, first, false, true);
      case "split" -> split(text, first);
      case "upper" -> text.toUpperCase(Locale.ROOT);
      case "lower" -> text.toLowerCase(Locale.ROOT);
      case "capitalize" -> capitalised(text);
      case "title" ->
          Pattern.compile("\\p{L}+").matcher(text).replaceAll(word -> capitalised(word.group()));
      case "startswith" -> first != null && text.startsWith(first);
      case "endswith" -> first != null && text.endsWith(first);
      case "replace" ->
          given.length < 2 || first == null ? null : text.replace(first, String.valueOf(given[1]));
      default -> null;
    };
  }

  private static String capitalised(String text) {
    return text.isEmpty()
        ? text
        : text.substring(0, 1).toUpperCase(Locale.ROOT)
            + text.substring(1).toLowerCase(Locale.ROOT);
  }

  /// @param set the characters to strip; null for white space
  static String stripped(String text, @Nullable String set, boolean left, boolean right) {
    String away = "[" + (set == null ? BLANKS : Pattern.quote(set)) + "]";
    String begun = left ? text.replaceFirst("^" + away + "+", "") : text;
    // The look-behind has the effect that each run of blanks within a text is examined only once.
    return right ? begun.replaceFirst("(?<!" + away + ")" + away + "+\\z", "") : begun;
  }

  private static List<String> split(String text, @Nullable String separator) {
    if (separator != null) {
      return new ArrayList<>(Arrays.asList(text.split(Pattern.quote(separator), -1)));
    }
    String words = stripped(text, null, true, true);
    return words.isEmpty()
        ? List.of()
        : new ArrayList<>(Arrays.asList(words.split("[" + BLANKS + "]+")));
  }

  private static @Nullable Object ofMap(Map<?, ?> map, String method, @Nullable Object... given) {
    return switch (method) {
      case "items" ->
          map.entrySet().stream()
              .map(entry -> Arrays.asList(entry.getKey(), entry.getValue()))
              .toList();
      case "keys" -> new ArrayList<>(map.keySet());
      case "values" -> new ArrayList<>(map.values());
      case "get" ->
          given.length > 0 && map.containsKey(given[0])
              ? map.get(given[0])
              : given.length > 1 ? given[1] : None.NONE;
      default -> null;
    };
  }
}
