// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/// Lists in files of the jar: their lines, without empty ones and comments.
final class ResourceLines {
  private ResourceLines() {}

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
