// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.json.JsonTree;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;

/// What a configuration says of one module, where it says different things of different modules.
///
/// @param format the layout's name
/// @param weights the layout's numbers
record GroupConfig(String format, JsonTree weights) {
  private static final int MAX_PATTERN = 1000;

  /// The most steps of matching: a pattern in a file may be one that never ends.
  private static final int MAX_STEPS = 100_000;

  /// Finds the group of compressed-tensors whose targets name the module, or its class `Linear`.
  static GroupConfig ofCompressed(JsonTree config, String module, Location location) {
    String format = config.text("format").orElse("");
    JsonTree ofAll = JsonTree.EMPTY;
    for (Object value : config.object("config_groups").members().values()) {
      if (!(value instanceof JsonTree group)) {
        continue;
      }
      for (Object target : group.get("targets", List.class).orElse(List.of())) {
        String text = String.valueOf(target);
        if (text.startsWith("re:")
            ? matches(text.substring(3), module, location)
            : text.equals(module)) {
          return of(group, format);
        }
        ofAll = text.equals("Linear") ? group : ofAll;
      }
    }
    return of(ofAll, format);
  }

  private static GroupConfig of(JsonTree group, String format) {
    return new GroupConfig(group.text("format").orElse(format), group.object("weights"));
  }

  /// Returns the configuration of GPTQ, with what `dynamic` changes for modules whose names match; the first match counts.
  static JsonTree ofGptq(JsonTree config, String module) {
    for (Map.Entry<String, Object> entry : config.object("dynamic").members().entrySet()) {
      String pattern = entry.getKey();
      if (pattern.startsWith("-:")) {
        continue;
      }
      if (entry.getValue() instanceof JsonTree changes
          && matches(pattern.startsWith("+:") ? pattern.substring(2) : pattern, module, null)) {
        Map<String, Object> all = new LinkedHashMap<>(config.members());
        all.putAll(changes.members());
        return new JsonTree(all);
      }
    }
    return config;
  }

  /// Whether a name begins as a pattern says.
  private static boolean matches(String pattern, String name, @Nullable Location location) {
    try {
      return pattern.length() <= MAX_PATTERN
          && Pattern.compile(pattern).matcher(new Counted(name, new AtomicInteger())).lookingAt();
    } catch (PatternSyntaxException | Counted.TooManyException e) {
      if (location == null) {
        return false;
      }
      throw new MalformedFileException(
          location,
          0,
          "bad-pattern",
          "the pattern '" + pattern + "' of a target cannot be matched");
    }
  }

  /// A text that ends a match which takes too long.
  private record Counted(String text, AtomicInteger steps) implements CharSequence {
    private static final class TooManyException extends RuntimeException {
      private static final long serialVersionUID = 1;
    }

    @Override
    public int length() {
      return text.length();
    }

    @Override
    public char charAt(int index) {
      if (steps.incrementAndGet() > MAX_STEPS) {
        throw new TooManyException();
      }
      return text.charAt(index);
    }

    @Override
    public CharSequence subSequence(int start, int end) {
      return text.subSequence(start, end);
    }

    @Override
    public String toString() {
      return text;
    }
  }
}
