// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import java.nio.file.Path;
import java.util.function.Function;

/// A server whose model is BF16, so that the guard must cover all of its operations; see
/// [ChildLoaderTest].
public final class ChildLoaderProgram implements Function<Path, float[]> {
  @Override
  public float[] apply(Path file) {
    LoadOptions options = LoadOptions.builder().optCast(DataType.BFLOAT16).build();
    try (Model model = Model.newInstance("child");
        Weights weights = Weights.open(file)) {
      model.setBlock(
          new SequentialBlock()
              .add(Linear.builder().setUnits(2).build())
              .add(Activation.reluBlock()));
      weights.load(
          model.getNDManager(), model.getBlock(), ParameterNames.same(), options, new Shape(1, 2));
      try (NDArray question = weights.load(model.getNDManager()).get("question");
          Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
          NDList answer = predictor.predict(new NDList(question));
          NDArray floats = answer.singletonOrThrow().toType(DataType.FLOAT32, true)) {
        return floats.toFloatArray();
      }
    } catch (TranslateException fault) {
      throw new IllegalStateException(fault);
    } finally {
      NoLeaks.assertNothingIsHeld();
    }
  }
}
