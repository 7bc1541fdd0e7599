// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/// Reads lists from text files in the jar. Empty lines and comments are left out.
final class ResourceLines {
  private ResourceLines() {}

  /// Returns the lines of each section. A section begins with its name in brackets.
  static Map<String, List<String>> sections(String file) {
    Map<String, List<String>> sections = new HashMap<>();
    List<String> section = new ArrayList<>();
    for (String line : of(file)) {
      if (line.startsWith("[")) {
        section = new ArrayList<>();
        sections.put(line.substring(1, line.length() - 1), section);
      } else {
        section.add(line);
      }
    }
    return sections;
  }

  /// Returns the lines of a section, and those of the sections that it includes.
  static List<String> lines(Map<String, List<String>> sections, String name) {
    return Objects.requireNonNull(sections.get(name), name).stream()
        .flatMap(line ->
            line.startsWith("use ") ? lines(sections, line.substring(4)).stream() : Stream.of(line))
        .toList();
  }

  static List<String> of(String file) {
    try (InputStream list = ResourceLines.class.getResourceAsStream(file)) {
      return new String(
              Objects.requireNonNull(list, "the jar lacks " + file).readAllBytes(),
              StandardCharsets.UTF_8)
          .lines()
          .filter(line -> !line.isEmpty() && !line.startsWith("#"))
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
