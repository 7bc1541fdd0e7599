// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.ModelException;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Batchifier;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/// Loads a model by DJL's `Criteria`, with a translator, and answers two questions in one batch.
///
/// `FOLDER` holds the weights of a classifier of 8 × 8 digits, such as
/// `samples/src/main/resources/model`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ServeByCriteria.java FOLDER
/// ```
public final class ServeByCriteria {
  /// DJL numbers a block's children; the file names its layers.
  public static final ParameterNames NAMES =
      ParameterNames.builder()
          .rule("01Linear_{kind}", "fc1.{kind}")
          .rule("03Linear_{kind}", "fc2.{kind}")
          .rule("05Linear_{kind}", "head.{kind}")
          .ignore("steps_trained")
          .build();

  private ServeByCriteria() {}

  public static void main(String[] arguments)
      throws IOException, ModelException, TranslateException {
    Usage.check("ServeByCriteria.java FOLDER", arguments);
    Criteria<float[], Long> criteria =
        Criteria.builder()
            .setTypes(float[].class, Long.class)
            .optModelPath(Path.of(arguments[0]))
            .optEngine("Gantry")
            .optArgument(
                "blockFactory",
                Weights.blockFactory(
                    (model, folder, settings) -> ServeModel.block(),
                    NAMES,
                    LoadOptions.defaults(),
                    new Shape(1, 64)))
            .optTranslator(new Digits())
            .build();
    float[] blank = new float[64];
    float[] stroke = new float[64];
    for (int row = 0; row < 8; row++) {
      stroke[row * 8 + 4] = 1;
    }
    try (ZooModel<float[], Long> model = criteria.loadModel();
        Predictor<float[], Long> predictor = model.newPredictor()) {
      List<Long> digits = predictor.batchPredict(List.of(blank, stroke));
      System.out.println("a blank image and a stroke look like " + digits);
    }
  }

  /// From 64 pixels to a digit.
  public static final class Digits implements Translator<float[], Long> {
    @Override
    public NDList processInput(TranslatorContext context, float[] pixels) {
      return new NDList(context.getNDManager().create(pixels));
    }

    @Override
    public Long processOutput(TranslatorContext context, NDList logits) {
      try (NDArray digit = logits.singletonOrThrow().argMax()) {
        return digit.getLong();
      }
    }

    @Override
    public Batchifier getBatchifier() {
      return Batchifier.STACK;
    }
  }
}
