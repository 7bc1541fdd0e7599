// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// How texts become blocks of tokens.
///
/// @param length the tokens of a block
/// @param tokenizer a `tokenizer.json`
/// @param end the token after each text; null for the one that the files beside the tokenizer name
/// @param dtype of a token's number: I32 or U16
/// @param padded whether the last block is filled up, not left out
public record TokenOptions(
    int length, Path tokenizer, @Nullable String end, DType dtype, boolean padded) {
  private static final List<String> BESIDE =
      List.of("tokenizer_config.json", "special_tokens_map.json");
  private static final String END = "eos_token";

  /// The token after each text, as text.
  Optional<String> endToken() throws IOException {
    if (end != null) {
      return Optional.of(end);
    }
    for (String name : BESIDE) {
      Path file = tokenizer.resolveSibling(name);
      if (Files.isRegularFile(file)) {
        try (JsonParser json = new JsonFactory().createParser(file.toFile())) {
          Optional<String> found = member(json, END);
          if (found.isPresent()) {
            return found;
          }
        } catch (JacksonException e) {
          throw new MalformedFileException(file, 0, "invalid-json", e.getOriginalMessage());
        }
      }
    }
    return Optional.empty();
  }

  /// The value of an object's member if it is a text, or an object with a text `content`.
  private static Optional<String> member(JsonParser json, String name) throws IOException {
    if (json.nextToken() != JsonToken.START_OBJECT) {
      return Optional.empty();
    }
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      boolean wanted = json.currentName().equals(name);
      JsonToken value = json.nextToken();
      if (wanted && value == JsonToken.VALUE_STRING) {
        return Optional.of(json.getText());
      }
      if (wanted && value == JsonToken.START_OBJECT) {
        while (json.nextToken() == JsonToken.FIELD_NAME) {
          boolean content = json.currentName().equals("content");
          if (json.nextToken() == JsonToken.VALUE_STRING && content) {
            return Optional.of(json.getText());
          }
          json.skipChildren();
        }
        return Optional.empty();
      }
      json.skipChildren();
    }
    return Optional.empty();
  }
}
