// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import dev.gantry.formats.internal.json.JsonTree;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// The configuration of one module, for configurations that treat their modules differently.
///
/// @param format the layout's name
/// @param weights the layout's settings, such as its number of bits
record GroupConfig(String format, JsonTree weights) {
  /// Finds the group of compressed-tensors whose targets name the module, or its class `Linear`.
  static GroupConfig ofCompressed(JsonTree config, String module, NamePatterns patterns) {
    String format = config.text("format").orElse("");
    JsonTree ofAll = JsonTree.EMPTY;
    for (Object value : config.object("config_groups").members().values()) {
      patterns.count(1);
      if (!(value instanceof JsonTree group)) {
        continue;
      }
      for (Object target : group.get("targets", List.class).orElse(List.of())) {
        patterns.count(1);
        if (!(target instanceof String text)) {
          continue;
        }
        if (text.startsWith("re:")
            ? patterns.matches(text.substring(3), module)
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

  /// Returns the GPTQ configuration of a module. It includes the changes that the first entry of
  /// `dynamic` whose pattern matches the module's name makes.
  static JsonTree ofGptq(JsonTree config, String module, NamePatterns patterns) {
    for (Map.Entry<String, Object> entry : config.object("dynamic").members().entrySet()) {
      patterns.count(1);
      String pattern = entry.getKey();
      if (pattern.startsWith("-:")) {
        continue;
      }
      if (entry.getValue() instanceof JsonTree changes
          && patterns.matches(pattern.startsWith("+:") ? pattern.substring(2) : pattern, module)) {
        patterns.count(config.members().size() + changes.members().size());
        Map<String, Object> all = new LinkedHashMap<>(config.members());
        all.putAll(changes.members());
        return new JsonTree(all);
      }
    }
    return config;
  }
}
