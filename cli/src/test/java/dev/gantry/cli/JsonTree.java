// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Parses JSON to maps, lists, strings, numbers, booleans and nulls.
final class JsonTree {
  private JsonTree() {}

  /// Parses exactly one document, in which no object has two members of one name.
  static Object parse(String text) {
    try (JsonParser json =
        JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .build()
            .createParser(text)) {
      json.nextToken();
      Object value = value(json);
      if (json.nextToken() != null) {
        throw new IllegalArgumentException("more than one document: " + text);
      }
      return value;
    } catch (IOException e) {
      throw new UncheckedIOException("no JSON: " + text, e);
    }
  }

  /// Reads a corpus's verdicts on its files, by the files' names.
  static Map<?, ?> verdicts(Path corpus) {
    try {
      return (Map<?, ?>) parse(Files.readString(corpus.resolve("expected.json")));
    } catch (IOException e) {
      throw new UncheckedIOException("no verdicts", e);
    }
  }

  private static Object value(JsonParser json) throws IOException {
    return switch (json.currentToken()) {
      case START_OBJECT -> {
        Map<String, Object> fields = new LinkedHashMap<>();
        while (json.nextToken() == JsonToken.FIELD_NAME) {
          String name = json.currentName();
          json.nextToken();
          fields.put(name, value(json));
        }
        yield fields;
      }
      case START_ARRAY -> {
        List<Object> elements = new ArrayList<>();
        while (json.nextToken() != JsonToken.END_ARRAY) {
          elements.add(value(json));
        }
        yield elements;
      }
      case VALUE_STRING -> json.getText();
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> json.getNumberValue();
      case VALUE_TRUE -> true;
      case VALUE_FALSE -> false;
      case VALUE_NULL -> null;
      case null, default -> throw new IllegalArgumentException("unexpected " + json.currentToken());
    };
  }
}
