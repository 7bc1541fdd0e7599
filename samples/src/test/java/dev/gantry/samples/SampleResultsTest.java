// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.translate.TranslateException;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.Weights;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The results that samples compute, beyond the lines that they print.
@ExtendWith(NoLeaks.class)
class SampleResultsTest {
  private static final Path MODEL = Path.of("src", "main", "resources", "model");

  @TempDir Path temporary;

  @Test
  void photographsAreNormalised() {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, TensorShape.of(2, 4, 3)),
            new Field("label", DType.I64, TensorShape.of()));
    Path folder = temporary.resolve("photographs");
    byte[] image = new byte[24];
    Arrays.fill(image, (byte) 255);
    try (ShardWriter writer = ShardWriter.create(folder, fields, ShardOptions.defaults())) {
      writer.append(
          Map.of(
              "image", MemorySegment.ofArray(image),
              "label", MemorySegment.ofArray(new long[1])));
      var _ = writer.finish();
    }
    try (ShardDataset dataset = TrainFromShards.photographs(folder);
        NDManager manager = NDManager.newBaseManager();
        Batch batch = dataset.getData(manager).iterator().next()) {
      NDArray data = batch.getData().singletonOrThrow();
      assertThat(data.getShape()).isEqualTo(new Shape(1, 3, 2, 4));
      assertThat(data.getDataType()).isEqualTo(DataType.FLOAT16);
      float[] values = data.toType(DataType.FLOAT32, true).toFloatArray();
      assertThat(values[0]).isCloseTo((1 - 0.485f) / 0.229f, Offset.offset(1e-3f));
      assertThat(values[23]).isCloseTo((1 - 0.406f) / 0.225f, Offset.offset(1e-3f));
    }
  }

  /// One small step away from the loaded weights, not from random ones.
  @Test
  void fineTuningBeginsAtTheLoadedWeights() throws IOException, TranslateException {
    try (Model model = Model.newInstance("parity");
        NDManager manager = NDManager.newBaseManager()) {
      model.setBlock(FineTune.block());
      ArrayDataset oneBatch =
          new ArrayDataset.Builder()
              .setData(manager.ones(new Shape(4, 64)))
              .optLabels(manager.zeros(new Shape(4), DataType.INT64))
              .setSampling(4, false)
              .build();

      LoadReport report = FineTune.train(model, MODEL, oneBatch);

      assertThat(report.unexpected())
          .containsExactlyInAnyOrder("head.weight", "head.bias", "steps_trained");
      try (Weights weights = Weights.open(MODEL);
          NDArray after = model.getBlock().getParameters().get("01Linear_bias").getArray();
          NDArray before =
              weights.load(manager).stream()
                  .filter(array -> array.getName().equals("fc1.bias"))
                  .findFirst()
                  .orElseThrow()) {
        float step = after.sub(before).abs().max().getFloat();
        assertThat(step).isGreaterThan(0).isLessThan(0.1f);
      }
    }
  }

  @Test
  void onnxRuntimeAnswersAsDjlDoes() throws Exception {
    float[][] question = new float[1][64];
    for (int i = 0; i < 64; i++) {
      question[0][i] = i % 17;
    }
    assertThat(RunOnnx.answer(MODEL.resolveSibling("digits.onnx"), MODEL, question))
        .containsExactly(ServeModel.answer(MODEL, question), Offset.offset(1e-3f));
  }
}
