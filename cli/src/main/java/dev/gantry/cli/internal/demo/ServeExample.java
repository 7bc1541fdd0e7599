package dev.gantry.cli.internal.demo;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.nio.file.Path;

/// What an inference server does when it starts: the README shows it.
public final class ServeExample {
  private ServeExample() {}

  /// @param questions `[n, 64]`
  /// @return logits `[n, 10]`, row by row
  public static float[] answer(Path folder, float[][] questions) throws TranslateException {
    try (Model model = Model.newInstance("digits");
        Weights weights = Weights.open(folder)) {
      model.setBlock(DigitModel.block());
      weights.load(
          model.getNDManager(),
          model.getBlock(),
          DigitModel.NAMES,
          LoadOptions.defaults(),
          new Shape(1, 64));

      try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
          NDArray question = model.getNDManager().create(questions);
          NDList answer = predictor.predict(new NDList(question))) {
        return answer.singletonOrThrow().toFloatArray();
      }
    }
  }
}
