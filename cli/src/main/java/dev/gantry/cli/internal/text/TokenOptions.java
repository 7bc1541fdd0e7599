// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import dev.gantry.core.DType;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.spi.FileBytes;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Says how texts become blocks of tokens.
///
/// @param length the number of tokens in a block
/// @param tokenizer the path of a `tokenizer.json`
/// @param end the token after each text; null for the token that a file beside the tokenizer
///     names
/// @param dtype the dtype of token ids: I32 or U16
/// @param padded whether the last block is padded; otherwise it is dropped
public record TokenOptions(
    int length, Path tokenizer, @Nullable String end, DType dtype, boolean padded) {
  private static final List<String> BESIDE =
      List.of("tokenizer_config.json", "special_tokens_map.json");
  private static final String END = "eos_token";

  /// Returns the text of the token after each text.
  ///
  /// @throws dev.gantry.core.MalformedFileException if a file beside the tokenizer is not a JSON
  ///     object
  Optional<String> endToken(GantrySession session) {
    if (end != null) {
      return Optional.of(end);
    }
    return BESIDE.stream()
        .map(tokenizer::resolveSibling)
        .filter(Files::isRegularFile)
        .flatMap(file -> endToken(session, file).stream())
        .findFirst();
  }

  private static Optional<String> endToken(GantrySession session, Path file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      JsonTree json = JsonTree.read(bytes);
      return json.text(END).or(() -> json.object(END).text("content"));
    }
  }
}
