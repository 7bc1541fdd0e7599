// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import ai.djl.util.JsonUtils;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A module of TorchScript that DJL has loaded gets weights from safetensors. The `make.py` of the
/// resources makes the module and the expected answers.
class TorchScriptTest {
  @TempDir private Path folder;
  private Expected expected = new Expected(List.of(), List.of(), List.of(), Map.of());

  record Stored(List<Long> shape, List<Double> values) {}

  record Expected(
      List<float[]> inputs,
      List<float[]> before,
      List<float[]> after,
      Map<String, Stored> weights) {}

  @BeforeEach
  void unpack() throws IOException {
    for (String module : List.of("net.pt", "frozen.pt")) {
      Files.write(folder.resolve(module), resource(module));
    }
    expected =
        JsonUtils.GSON.fromJson(
            new String(resource("expected.json"), StandardCharsets.UTF_8), Expected.class);
  }

  @AfterEach
  void nothingIsHeld() {
    NoLeaks.assertNothingIsHeld();
  }

  private static byte[] resource(String name) throws IOException {
    try (InputStream in =
        Objects.requireNonNull(TorchScriptTest.class.getResourceAsStream("/torchscript/" + name))) {
      return in.readAllBytes();
    }
  }

  private ZooModel<NDList, NDList> module(String file, boolean trainParam) throws Exception {
    return Criteria.builder()
        .setTypes(NDList.class, NDList.class)
        .optModelPath(folder.resolve(file))
        .optEngine("PyTorch")
        .optOption("trainParam", String.valueOf(trainParam))
        .optTranslator(new NoopTranslator())
        .build()
        .loadModel();
  }

  private Path weights() throws IOException {
    WeightsFile file = new WeightsFile();
    expected
        .weights()
        .forEach((name, stored) ->
            file.tensor(
                name,
                DType.F32,
                TensorShape.of(stored.shape().stream().mapToLong(Long::longValue).toArray()),
                stored.values().stream().mapToDouble(Double::doubleValue).toArray()));
    return file.write(folder.resolve("other.safetensors"));
  }

  private void assertAnswers(
      Predictor<NDList, NDList> predictor, ZooModel<?, ?> model, List<float[]> answers)
      throws TranslateException {
    try (NDArray inputs = model.getNDManager().create(expected.inputs().toArray(float[][]::new));
        NDList outputs = predictor.predict(new NDList(inputs))) {
      float[] flat = outputs.singletonOrThrow().toFloatArray();
      for (int i = 0; i < flat.length; i++) {
        assertThat(flat[i]).isCloseTo(answers.get(i / 3)[i % 3], Offset.offset(1e-5f));
      }
    }
  }

  /// The option `trainParam` decides whether parameters have gradients.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void itsParametersTakeOtherWeights(boolean trainParam) throws Exception {
    try (ZooModel<NDList, NDList> model = module("net.pt", trainParam);
        Predictor<NDList, NDList> predictor = model.newPredictor();
        Weights weights = Weights.open(weights())) {
      // The module runs several times, because TorchScript optimises a module after its first
      // runs.
      for (int run = 0; run < 4; run++) {
        assertAnswers(predictor, model, expected.before());
      }
      NDArray parameter = model.getBlock().getParameters().get("fc1.weight").getArray();

      LoadReport report = load(weights, model);

      assertThat(report.loaded()).containsOnlyKeys(expected.weights().keySet());
      assertThat(model.getBlock().getParameters().get("fc1.weight").getArray()).isSameAs(parameter);
      assertThat(parameter.hasGradient()).isEqualTo(trainParam);
      for (int run = 0; run < 4; run++) {
        assertAnswers(predictor, model, expected.after());
      }
    }
  }

  @Test
  void predictorsGoOnWhileLiveWeightsRefreshIt() throws Exception {
    try (ZooModel<NDList, NDList> model = module("net.pt", false);
        LiveWeights live = LiveWeights.of(model.getBlock());
        Weights weights = Weights.open(weights())) {
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> LiveWeights.of(model.getBlock()))
          .withMessageContaining("has LiveWeights that are open");
      model.setBlock(live.block());
      try (Predictor<NDList, NDList> predictor = model.newPredictor()) {
        assertAnswers(predictor, model, expected.before());
        live.refresh(weights, ParameterNames.same(), LoadOptions.defaults());
        assertAnswers(predictor, model, expected.after());
      }
    }
  }

  @Test
  void aTensorOfAnotherShapeIsRefused() throws Exception {
    Path file =
        new WeightsFile()
            .tensor("fc1.weight", DType.F32, TensorShape.of(5, 3), new double[15])
            .write(folder.resolve("wrong.safetensors"));
    try (ZooModel<NDList, NDList> model = module("net.pt", false);
        Predictor<NDList, NDList> predictor = model.newPredictor();
        Weights weights = Weights.open(file)) {
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> load(weights, model))
          .withMessageContaining("fc1.weight");
      assertAnswers(predictor, model, expected.before());
    }
  }

  @Test
  void aFrozenModuleHasNoParameters() throws Exception {
    try (ZooModel<NDList, NDList> model = module("frozen.pt", false);
        Weights weights = Weights.open(weights())) {
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> load(weights, model))
          .withMessage(
              "the module has no parameters: if it was frozen, its weights became constants");
      try (LiveWeights live = LiveWeights.of(model.getBlock())) {
        assertThatExceptionOfType(MisuseException.class)
            .isThrownBy(() -> live.refresh(weights, ParameterNames.same(), LoadOptions.defaults()))
            .withMessageContaining("no parameters");
      }
    }
  }

  private static LoadReport load(Weights weights, ZooModel<?, ?> model) {
    return weights.load(
        model.getNDManager(), model.getBlock(), ParameterNames.same(), LoadOptions.defaults());
  }
}
