// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// The reference implementation's verdict on a corpus file.
///
/// @param shapes the shapes by tensor name, as lists of dimensions; empty if the file is not valid
/// @param float32 the SHA-256 of the values as F32, by the name of a GGUF tensor
public record Verdict(
    boolean valid,
    Map<String, String> metadata,
    Map<String, String> dtypes,
    Map<String, List<Long>> shapes,
    Map<String, String> sha256,
    Map<String, String> float32) {
  /// Returns all verdicts of an `expected.json` by file name.
  public static Map<String, Verdict> readAll(Path expected) throws IOException {
    Map<String, Verdict> verdicts = new TreeMap<>();
    try (JsonParser json = new JsonFactory().createParser(expected.toFile())) {
      json.nextToken();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String file = json.currentName();
        json.nextToken();
        verdicts.put(file, read(json));
      }
    }
    return verdicts;
  }

  private static Verdict read(JsonParser json) throws IOException {
    Verdict verdict =
        new Verdict(
            false,
            new HashMap<>(),
            new HashMap<>(),
            new HashMap<>(),
            new HashMap<>(),
            new HashMap<>());
    boolean valid = false;
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String field = json.currentName();
      json.nextToken();
      switch (field) {
        case "valid" -> valid = json.getBooleanValue();
        case "metadata" -> {
          while (json.nextToken() == JsonToken.FIELD_NAME) {
            verdict.metadata.put(json.currentName(), json.nextTextValue());
          }
        }
        case "tensors", "arrays" -> {
          while (json.nextToken() == JsonToken.FIELD_NAME) {
            String name = json.currentName();
            json.nextToken();
            tensor(json, name, verdict);
          }
        }
        default -> json.skipChildren();
      }
    }
    return new Verdict(
        valid, verdict.metadata, verdict.dtypes, verdict.shapes, verdict.sha256, verdict.float32);
  }

  private static void tensor(JsonParser json, String name, Verdict verdict) throws IOException {
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String field = json.currentName();
      json.nextToken();
      switch (field) {
        case "dtype", "type" -> verdict.dtypes.put(name, json.getText());
        case "sha256", "raw_sha256" -> verdict.sha256.put(name, json.getText());
        case "float32_sha256" -> verdict.float32.put(name, json.getText());
        case "shape" -> {
          List<Long> shape = new ArrayList<>();
          while (json.nextToken() != JsonToken.END_ARRAY) {
            shape.add(json.getLongValue());
          }
          verdict.shapes.put(name, shape);
        }
        default -> throw new IOException("unknown field " + field);
      }
    }
  }
}
