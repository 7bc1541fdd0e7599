// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// The weights of the classifier of digits that [ServeModel][dev.gantry.samples.ServeModel] serves, in
/// three files that safetensors' own writer wrote; and what it is asked and must answer.
public final class DigitAnswers {
  private static final int MOST_COLUMNS = 64;
  private static final String EXPECTED = "expected.json";
  private static final List<String> FILES =
      List.of(
          "model.safetensors.index.json",
          "model-00001-of-00003.safetensors",
          "model-00002-of-00003.safetensors",
          "model-00003-of-00003.safetensors",
          EXPECTED);

  private List<float[]> inputs = List.of();
  private List<float[]> logits = List.of();
  private double tolerance;

  private DigitAnswers() {}

  /// Copies the weights and the expected answers into a new folder.
  public static Path extract(Path parent) throws IOException {
    Path folder = Files.createDirectory(parent.resolve("digits"));
    for (String file : FILES) {
      try (InputStream in = DigitAnswers.class.getResourceAsStream("/model/" + file)) {
        if (in == null) {
          throw new FileNotFoundException("/model/" + file + " is not in the jar");
        }
        Files.copy(in, folder.resolve(file));
      }
    }
    return folder;
  }

  /// Reads the expectations of a model that was extracted to `folder`.
  public static DigitAnswers of(Path folder) throws IOException {
    DigitAnswers answers = new DigitAnswers();
    Path file = folder.resolve(EXPECTED);
    try (JsonParser json = new JsonFactory().createParser(file.toFile())) {
      json.nextToken();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String field = json.currentName();
        json.nextToken();
        switch (field) {
          case "inputs" -> answers.inputs = rows(json);
          case "logits" -> answers.logits = rows(json);
          case "tolerance" -> answers.tolerance = json.getDoubleValue();
          case null, default -> json.skipChildren();
        }
      }
    }
    return answers;
  }

  private static List<float[]> rows(JsonParser json) throws IOException {
    List<float[]> rows = new ArrayList<>();
    while (json.nextToken() == JsonToken.START_ARRAY) {
      FloatBuffer row = FloatBuffer.allocate(MOST_COLUMNS);
      while (json.nextToken() != JsonToken.END_ARRAY) {
        row.put(json.getFloatValue());
      }
      rows.add(Arrays.copyOf(row.array(), row.position()));
    }
    return rows;
  }

  /// `[4, 64]`.
  public float[][] inputs() {
    return inputs.toArray(float[][]::new);
  }

  /// The most that an answer may differ.
  public double tolerance() {
    return tolerance;
  }

  public int logits() {
    return logits.stream().mapToInt(row -> row.length).sum();
  }

  /// The largest difference of any logit, NaN if one is that.
  ///
  /// @param answered `[4, 10]`, row by row
  public double difference(float[] answered) {
    if (answered.length != logits()) {
      throw new CheckFailedException(
          "the model gave " + answered.length + " logits, not " + logits());
    }
    double largest = 0;
    FloatBuffer answers = FloatBuffer.wrap(answered);
    for (float[] row : logits) {
      for (float logit : row) {
        largest = Math.max(largest, Math.abs(answers.get() - logit));
      }
    }
    return largest;
  }
}
