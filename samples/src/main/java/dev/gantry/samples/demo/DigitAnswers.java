// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.util.JsonUtils;
import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/// The questions for the classifier of digits that [ServeModel][dev.gantry.samples.ServeModel]
/// serves, and the expected answers.
///
/// @param inputs `[4, 64]`
/// @param logits `[4, 10]`
/// @param tolerance the largest accepted difference of a logit
public record DigitAnswers(List<float[]> inputs, List<float[]> logits, double tolerance) {
  private static final String EXPECTED = "expected.json";
  private static final List<String> FILES =
      List.of(
          "model.safetensors.index.json",
          "model-00001-of-00003.safetensors",
          "model-00002-of-00003.safetensors",
          "model-00003-of-00003.safetensors",
          EXPECTED);

  /// Copies the classifier's weights, three files that safetensors' own writer wrote, and its expected
  /// answers into a new folder.
  public static Path extract(Path parent) throws IOException {
    Path folder = Files.createDirectory(parent.resolve("digits"));
    for (String file : FILES) {
      try (InputStream in =
          Objects.requireNonNull(DigitAnswers.class.getResourceAsStream("/model/" + file), file)) {
        Files.copy(in, folder.resolve(file));
      }
    }
    return folder;
  }

  /// Reads the expectations of a model that was extracted to `folder`.
  static DigitAnswers of(Path folder) throws IOException {
    try (Reader json = Files.newBufferedReader(folder.resolve(EXPECTED))) {
      return JsonUtils.GSON.fromJson(json, DigitAnswers.class);
    }
  }

  /// Returns the questions for [ServeModel][dev.gantry.samples.ServeModel].
  float[][] questions() {
    return inputs.toArray(float[][]::new);
  }

  int count() {
    return logits.size() * logits.getFirst().length;
  }

  /// Returns the largest difference of a logit; NaN if a logit is NaN.
  ///
  /// @param answered the model's logits, row by row
  double difference(float[] answered) {
    if (answered.length != count()) {
      throw new CheckFailedException(
          "the model gave " + answered.length + " logits, not " + count());
    }
    double largest = 0;
    for (int i = 0; i < answered.length; i++) {
      float[] row = logits.get(i / logits.getFirst().length);
      float expected = row[i % row.length];
      largest = Math.max(largest, Math.abs(answered[i] - expected));
    }
    return largest;
  }
}
