// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.core.Device;
import dev.gantry.core.Session;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/// Loads weights into a block and answers a question with it, as an inference server does when it
/// starts.
///
/// `FOLDER` holds the weights of a classifier of 8 × 8 digits, such as
/// `samples/src/main/resources/model`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ServeModel.java FOLDER
/// ```
public final class ServeModel {
  /// DJL numbers a block's children; the file names its layers.
  public static final ParameterNames NAMES =
      ParameterNames.of(
          Map.of(
              "01Linear_weight", "fc1.weight",
              "01Linear_bias", "fc1.bias",
              "03Linear_weight", "fc2.weight",
              "03Linear_bias", "fc2.bias",
              "05Linear_weight", "head.weight",
              "05Linear_bias", "head.bias"));

  private ServeModel() {}

  public static void main(String[] arguments) throws TranslateException {
    Usage.check("ServeModel.java FOLDER", arguments);
    // Opens the first GPU in the background, if there is one, while DJL's engine starts.
    Session.shared().prepare(Device.parse("cuda"));
    float[] blank = new float[64];
    float[] logits = answer(Path.of(arguments[0]), new float[][] {blank});
    System.out.println("the logits of a blank image: " + Arrays.toString(logits));
  }

  /// The layers. Their parameters have no arrays yet.
  public static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(96).build())
        .add(list -> new NDList(Activation.relu(list.singletonOrThrow())))
        .add(Linear.builder().setUnits(80).build())
        .add(list -> new NDList(Activation.relu(list.singletonOrThrow())))
        .add(Linear.builder().setUnits(10).build());
  }

  /// @param questions `[n, 64]`
  /// @return logits `[n, 10]`, row by row
  public static float[] answer(Path folder, float[][] questions) throws TranslateException {
    try (Model model = Model.newInstance("digits");
        Weights weights = Weights.open(folder)) {
      model.setBlock(block());
      weights.load(
          model.getNDManager(), model.getBlock(), NAMES, LoadOptions.defaults(), new Shape(1, 64));

      try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
          NDArray question = model.getNDManager().create(questions);
          NDList answer = predictor.predict(new NDList(question))) {
        return answer.singletonOrThrow().toFloatArray();
      }
    }
  }
}
