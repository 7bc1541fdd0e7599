// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// The corpus's verdict on one of its files.
///
/// @param records the SHA-256 of each good record
/// @param error the error of the first bad record
/// @param features the features of each record by name; empty if the records are no examples
public record Verdict(
    Compression compression,
    List<String> records,
    @Nullable Fault error,
    List<Map<String, Values>> features) {
  public static final Path CORPUS = Path.of("src/test/resources/corpus/tfrecord");

  public record Fault(long record, long offset, String kind) {}

  /// @param kind `bytes`, `float` or `int64`
  /// @param list the values as `byte[]`, [Float] or [Long]
  public record Values(String kind, List<Object> list) {}

  /// Returns all verdicts by file name.
  public static Map<String, Verdict> all() {
    Map<String, Verdict> verdicts = new TreeMap<>();
    try (JsonParser json =
        new JsonFactory().createParser(CORPUS.resolve("expected.json").toFile())) {
      json.nextToken();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String file = json.currentName();
        json.nextToken();
        verdicts.put(file, read(json));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return verdicts;
  }

  private static Verdict read(JsonParser json) throws IOException {
    Compression compression = Compression.NONE;
    List<String> records = new ArrayList<>();
    Fault error = null;
    List<Map<String, Values>> features = new ArrayList<>();
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String field = json.currentName();
      JsonToken value = json.nextToken();
      switch (field) {
        case "compression" -> {
          if (value != JsonToken.VALUE_NULL) {
            compression = Compression.valueOf(json.getText());
          }
        }
        case "records" -> {
          while (json.nextToken() != JsonToken.END_ARRAY) {
            records.add(json.getText());
          }
        }
        case "error" -> {
          if (value != JsonToken.VALUE_NULL) {
            error = fault(json);
          }
        }
        case "features" -> {
          while (json.nextToken() != JsonToken.END_ARRAY) {
            features.add(features(json));
          }
        }
        default -> throw new IOException("unknown field " + field);
      }
    }
    return new Verdict(compression, records, error, features);
  }

  private static Fault fault(JsonParser json) throws IOException {
    long record = -1;
    long offset = -1;
    String kind = "";
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String field = json.currentName();
      json.nextToken();
      switch (field) {
        case "record" -> record = json.getLongValue();
        case "offset" -> offset = json.getLongValue();
        case "kind" -> kind = json.getText();
        default -> throw new IOException("unknown field " + field);
      }
    }
    return new Fault(record, offset, kind);
  }

  private static Map<String, Values> features(JsonParser json) throws IOException {
    Map<String, Values> features = new TreeMap<>();
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String name = json.currentName();
      json.nextToken();
      String kind = json.nextTextValue();
      json.nextToken();
      List<Object> list = new ArrayList<>();
      while (json.nextToken() != JsonToken.END_ARRAY) {
        list.add(
            switch (kind) {
              case "bytes" -> HexFormat.of().parseHex(json.getText());
              case "float" -> (float) json.getDoubleValue();
              case "int64" -> json.getLongValue();
              case null, default -> throw new IOException("unknown kind " + kind);
            });
      }
      json.nextToken();
      features.put(name, new Values(kind, list));
    }
    return features;
  }
}
