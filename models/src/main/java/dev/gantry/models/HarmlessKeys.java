// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/// Keys of `config.json` that change no answer of a model here: they describe the file, its training,
/// its tokens, how text is generated, or what else the library that writes these files returns. They are
/// listed in `harmless-keys.txt`.
final class HarmlessKeys {
  static final Set<String> ALL = read();

  private HarmlessKeys() {}

  private static Set<String> read() {
    try (InputStream list = HarmlessKeys.class.getResourceAsStream("harmless-keys.txt")) {
      return new String(
              Objects.requireNonNull(list, "the jar lacks harmless-keys.txt").readAllBytes(),
              StandardCharsets.UTF_8)
          .lines()
          .filter(Predicate.not(String::isEmpty))
          .filter(line -> !line.startsWith("#"))
          .collect(Collectors.toUnmodifiableSet());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
