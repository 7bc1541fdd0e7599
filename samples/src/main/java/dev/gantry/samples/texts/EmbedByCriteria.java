// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import ai.djl.ModelException;
import ai.djl.inference.Predictor;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.TranslateException;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/// Turns texts into vectors by DJL's `Criteria`.
///
/// `FOLDER` is as [EmbedTexts] takes it.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' EmbedByCriteria.java FOLDER TEXT …
/// ```
public final class EmbedByCriteria {
  private EmbedByCriteria() {}

  public static void main(String[] arguments)
      throws IOException, ModelException, TranslateException {
    Usage.check("EmbedByCriteria.java FOLDER TEXT …", arguments);
    Criteria<String, float[]> criteria =
        Criteria.builder()
            .setTypes(String.class, float[].class)
            .optModelPath(Path.of(arguments[0]))
            .optEngine("Gantry")
            .build();
    List<String> texts = List.of(arguments).subList(1, arguments.length);
    try (ZooModel<String, float[]> model = criteria.loadModel();
        Predictor<String, float[]> predictor = model.newPredictor()) {
      for (float[] vector : predictor.batchPredict(texts)) {
        System.out.println(Arrays.toString(vector));
      }
    }
  }
}
