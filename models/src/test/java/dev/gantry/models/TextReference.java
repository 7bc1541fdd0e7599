// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.util.StringPair;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// Texts, and what sentence-transformers or transformers answers to them: a folder's `expected.json`.
record TextReference(JsonObject json) {
  static final Path TEXTS = Path.of("src", "test", "resources", "texts");

  static TextReference of(String folder) throws IOException {
    Path file = TEXTS.resolve(folder).resolve("expected.json");
    return new TextReference(JsonParser.parseString(Files.readString(file)).getAsJsonObject());
  }

  List<String> texts() {
    return json.getAsJsonArray("texts").asList().stream().map(JsonElement::getAsString).toList();
  }

  List<StringPair> pairs() {
    List<StringPair> pairs = new ArrayList<>();
    for (JsonElement pair : json.getAsJsonArray("pairs")) {
      JsonArray both = pair.getAsJsonArray();
      pairs.add(new StringPair(both.get(0).getAsString(), both.get(1).getAsString()));
    }
    return pairs;
  }

  float[][] vectors(String prompt) {
    return rows(json.getAsJsonObject("vectors").getAsJsonArray(prompt));
  }

  float[][] rows(String key) {
    return rows(json.getAsJsonArray(key));
  }

  private static float[][] rows(JsonArray rows) {
    float[][] all = new float[rows.size()][];
    for (int i = 0; i < all.length; i++) {
      all[i] = row(rows.get(i).getAsJsonArray());
    }
    return all;
  }

  float[] row(String key) {
    return row(json.getAsJsonArray(key));
  }

  private static float[] row(JsonArray numbers) {
    float[] row = new float[numbers.size()];
    for (int i = 0; i < row.length; i++) {
      row[i] = numbers.get(i).getAsFloat();
    }
    return row;
  }

  /// Requires vectors that point the same way, and whose numbers differ by 2e-5 of the largest at most.
  static void requireClose(float[][] answers, float[][] expected) {
    assertThat(answers).hasDimensions(expected.length, expected[0].length);
    for (int i = 0; i < expected.length; i++) {
      double product = 0;
      double squares = 0;
      double others = 0;
      for (int j = 0; j < expected[i].length; j++) {
        product += (double) answers[i][j] * expected[i][j];
        squares += (double) answers[i][j] * answers[i][j];
        others += (double) expected[i][j] * expected[i][j];
      }
      assertThat(product / Math.sqrt(squares * others))
          .as("cosine of %s", i)
          .isGreaterThan(0.99999);
      requireClose(answers[i], expected[i]);
    }
  }

  static void requireClose(float[] answers, float[] expected) {
    assertThat(answers).hasSize(expected.length);
    for (int j = 0; j < expected.length; j++) {
      float within = 2e-5f * Math.max(1, Math.abs(expected[j]));
      assertThat(answers[j]).as("number %s", j).isCloseTo(expected[j], within(within));
    }
  }

  private static org.assertj.core.data.Offset<Float> within(float offset) {
    return org.assertj.core.data.Offset.offset(offset);
  }

  /// Copies a folder, so that a test may change it.
  static Path copy(Path from, Path to) throws IOException {
    try (Stream<Path> files = Files.walk(from)) {
      for (Path each : files.toList()) {
        Path target = to.resolve(from.relativize(each).toString());
        if (Files.isDirectory(each)) {
          Files.createDirectories(target);
        } else {
          Files.copy(each, target);
        }
      }
    }
    return to;
  }

  /// Replaces text in a file.
  static void edit(Path file, String present, String instead) throws IOException {
    String text = Files.readString(file);
    assertThat(text).contains(present);
    Files.writeString(file, text.replace(present, instead));
  }
}
