// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.JsonUtils;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.assertj.core.data.Offset;

/// A classifier in three data files that safetensors' own writer made, and its answers as numpy
/// computed them.
final class ReferenceModel {
  private static final ParameterNames NAMES =
      ParameterNames.of(
          Map.of(
              "01Linear_weight", "fc1.weight",
              "01Linear_bias", "fc1.bias",
              "03Linear_weight", "fc2.weight",
              "03Linear_bias", "fc2.bias",
              "05Linear_weight", "head.weight",
              "05Linear_bias", "head.bias"));

  private static final List<String> FILES =
      List.of(
          "expected.json",
          "model.safetensors.index.json",
          "model-00001-of-00003.safetensors",
          "model-00002-of-00003.safetensors",
          "model-00003-of-00003.safetensors");

  private static final Path FOLDER = unpack();

  private ReferenceModel() {}

  /// Loads the model into a new block, before or after the block is initialised.
  static void assertAnswers(NDManager parent, boolean initializeFirst, boolean lazy)
      throws IOException {
    Path folder = FOLDER;
    JsonObject expected =
        JsonUtils.GSON.fromJson(
            Files.readString(folder.resolve("expected.json")), JsonObject.class);
    float[][] inputs = JsonUtils.GSON.fromJson(expected.get("inputs"), float[][].class);
    float[][] answers = JsonUtils.GSON.fromJson(expected.get("logits"), float[][].class);
    float tolerance = expected.get("tolerance").getAsFloat();
    SequentialBlock block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(96).build())
            .add(Activation.reluBlock())
            .add(Linear.builder().setUnits(80).build())
            .add(Activation.reluBlock())
            .add(Linear.builder().setUnits(10).build());
    try (NDManager manager = parent.newSubManager();
        Weights weights = Weights.open(folder)) {
      Shape input = new Shape(inputs.length, 64);
      LoadOptions options = Machine.loadOptions(lazy).build();
      if (initializeFirst) {
        block.initialize(manager, DataType.FLOAT32, input);
      }
      weights.load(manager, block, NAMES, options, input);
      NDArray logits =
          block
              .forward(
                  new ParameterStore(manager, false), new NDList(manager.create(inputs)), false)
              .singletonOrThrow();
      for (int i = 0; i < answers.length; i++) {
        assertThat(logits.get(i).toFloatArray())
            .containsExactly(answers[i], Offset.offset(tolerance));
      }
    }
  }

  /// Copies the model's files, which may lie in a jar, to a folder.
  private static Path unpack() {
    try {
      Path folder = Files.createTempDirectory("reference-model-");
      folder.toFile().deleteOnExit();
      for (String name : FILES) {
        Path copy = folder.resolve(name);
        copy.toFile().deleteOnExit();
        try (InputStream file = ReferenceModel.class.getResourceAsStream("/model/" + name)) {
          Files.copy(Objects.requireNonNull(file, name), copy);
        }
      }
      return folder;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
