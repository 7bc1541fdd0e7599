// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.ndarray.GantryNDArray;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Models that are saved and restored without a trainer.
@ExtendWith(NoLeaks.class)
class ModelCheckpointTest {
  private static final Shape INPUT = new Shape(2, 6);

  @TempDir(factory = InMemory.class)
  private Path folder;

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anInitialisedModelKeepsItsArrays(boolean async) {
    Map<String, float[]> saved = saveModel(async);
    try (Model other = model(Training.perceptron());
        CheckpointSaver saver = saver(false)) {
      initialize(other);
      Map<String, NDArray> arrays = arrays(other);
      saver.restore(5, other, null);
      assertThat(arrays(other).values()).containsExactlyElementsOf(arrays.values());
      arrays(other)
          .forEach((path, array) -> {
            assertThat(array).isSameAs(arrays.get(path)).isNotInstanceOf(GantryNDArray.class);
            assertThat(array.toFloatArray()).as(path).isEqualTo(saved.get(path));
          });
    }
  }

  @Test
  void aModelWithoutArraysGetsThoseThatWereLoaded() {
    Map<String, float[]> saved = saveModel(false);
    try (Model other = model(Training.perceptron());
        CheckpointSaver saver = saver(false)) {
      saver.restore(5, other, null);
      arrays(other)
          .forEach((path, array) -> {
            assertThat(array).as(path).isInstanceOf(GantryNDArray.class);
            assertThat(array.toFloatArray()).as(path).isEqualTo(saved.get(path));
          });
      // DJL's initialisation leaves the restored values unchanged.
      initialize(other);
      arrays(other)
          .forEach((path, array) ->
              assertThat(array.toFloatArray()).as(path).isEqualTo(saved.get(path)));
      // A restored model can be saved again.
      var _ = saver.save(SaveRequest.builder().setStep(6).setModel(other).build());
      saver.restore(6, other, null);
      arrays(other)
          .forEach((path, array) ->
              assertThat(array.toFloatArray()).as(path).isEqualTo(saved.get(path)));
    }
  }

  @Test
  void ofATrainingTheModelAlone() {
    Map<String, float[]> saved = new LinkedHashMap<>();
    try (Training training = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = saver(false)) {
      training.steps(0, 2);
      arrays(training.model).forEach((path, array) -> saved.put(path, array.toFloatArray()));
      var _ = saver.save(2, training.model, training.trainer);
    }
    try (Model other = model(Training.perceptron());
        CheckpointSaver saver = saver(false)) {
      assertThat(saver.restoreLatest(other, null).orElseThrow().step()).isEqualTo(2);
      assertThat(arrays(other).keySet()).isEqualTo(saved.keySet());
      arrays(other)
          .forEach((path, array) ->
              assertThat(array.toFloatArray()).as(path).isEqualTo(saved.get(path)));
    }
  }

  @Test
  void othersSeeTheModelsTensorsOnly() {
    try (Training training = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = saver(false)) {
      training.steps(0, 1);
      var _ =
          saver.save(
              SaveRequest.builder()
                  .setStep(1)
                  .setModel(training.model)
                  .optTrainer(training.trainer)
                  .optMetadata("author", "me")
                  .build());
      Path step = saver.latest().orElseThrow().folder();
      try (Weights weights = Weights.open(step);
          NDManager manager = NDManager.newBaseManager()) {
        assertThat(weights.tensors().keySet())
            .containsExactlyInAnyOrderElementsOf(arrays(training.model).keySet());
        assertThat(weights.metadata()).containsEntry("author", "me");
        for (NDArray array : weights.load(manager)) {
          assertThat(array.toFloatArray())
              .isEqualTo(arrays(training.model).get(array.getName()).toFloatArray());
        }
      }
      try (Weights optimizer = Weights.open(step.resolve("optimizer.safetensors.index.json"))) {
        assertThat(optimizer.tensors()).hasSize(12).containsKey("means/01Linear_weight");
      }
    }
  }

  @ParameterizedTest
  @EnumSource(
      names = {
        "BOOL", "U8", "I8", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "I64", "U64", "F64"
      })
  void aTypeStaysWhatItIs(DType dtype) throws IOException {
    TensorShape shape = TensorShape.of(2, 2);
    Path file =
        new WeightsFile()
            .tensor("some", dtype, shape, 1, 0, 1, 1)
            .tensor("none", dtype, TensorShape.of(0, 3))
            .tensor("scalar", dtype, TensorShape.of(), 1)
            .write(folder.resolve("given.safetensors"));
    Path again = folder.resolve("saved");
    try (Model model = model(new ParametersBlock());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(again).build()) {
      ParametersBlock block = (ParametersBlock) model.getBlock();
      try (Weights weights = Weights.open(file)) {
        weights.load(model.getNDManager()).forEach(array -> block.with(array.getName(), array));
        var _ = saver.save(SaveRequest.builder().setStep(1).setModel(model).build());
        var saved =
            SafetensorsOpener.open(GantrySession.shared(), again.resolve("gantry-step-1"))
                .tensors();
        assertThat(saved).hasSize(3);
        for (StoredTensor info : saved.values()) {
          StoredTensor given =
              SafetensorsOpener.open(GantrySession.shared(), file).tensors().get(info.name());
          assertThat(info.dtype()).isEqualTo(dtype);
          assertThat(info.shape()).isEqualTo(given.shape());
          assertThat(bytes(info)).isEqualTo(bytes(given));
        }
      }
      try (Model other = model(new ParametersBlock())) {
        for (String name : List.of("some", "none", "scalar")) {
          ((ParametersBlock) other.getBlock()).add(name);
        }
        saver.restore(1, other, null);
        for (NDArray array : arrays(other).values()) {
          assertThat(array.getDataType()).isEqualTo(PyTorch.dataType(dtype).orElseThrow());
        }
      }
    }
  }

  @Test
  void viewsAreSavedAsTheyLook() {
    try (Model model = model(new ParametersBlock());
        CheckpointSaver saver = saver(true)) {
      NDManager manager = model.getNDManager();
      NDArray base = manager.arange(0, 24, 1, DataType.FLOAT32).reshape(4, 6);
      ((ParametersBlock) model.getBlock())
          .with("transposed", base.transpose())
          .with("columns", base.get(":, 1:5:2"))
          .with("broadcast", manager.create(7f).broadcast(2, 3))
          .with("rows", base.get("2:"));
      var _ = saver.save(SaveRequest.builder().setStep(1).setModel(model).build());
      saver.await();
      try (Model other = model(new ParametersBlock())) {
        for (String name : arrays(model).keySet()) {
          ((ParametersBlock) other.getBlock()).add(name);
        }
        saver.restore(1, other, null);
        arrays(other)
            .forEach((name, array) -> {
              NDArray expected = arrays(model).get(name);
              assertThat(array.getShape()).as(name).isEqualTo(expected.getShape());
              assertThat(array.toFloatArray()).as(name).isEqualTo(expected.toFloatArray());
            });
      }
    }
  }

  @Test
  void intoAnotherTypeOnlyWhereBothAreFloatingPoint() {
    try (Model model = model(new ParametersBlock());
        CheckpointSaver saver = saver(false)) {
      NDManager manager = model.getNDManager();
      ((ParametersBlock) model.getBlock()).with("weight", manager.create(new float[] {1, 2}));
      var _ = saver.save(SaveRequest.builder().setStep(1).setModel(model).build());
      try (Model other = model(new ParametersBlock().with("weight", manager.create(new int[2])))) {
        assertThatThrownBy(() -> saver.restore(1, other, null))
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining("'weight'");
        assertThat(arrays(other).get("weight").toIntArray()).containsExactly(0, 0);
      }
      try (Model other =
          model(new ParametersBlock().with("weight", manager.create(new double[2])))) {
        saver.restore(1, other, null);
        assertThat(arrays(other).get("weight").toDoubleArray()).containsExactly(1, 2);
      }
    }
  }

  private Map<String, float[]> saveModel(boolean async) {
    Map<String, float[]> saved = new LinkedHashMap<>();
    try (Model model = model(Training.perceptron());
        CheckpointSaver saver = saver(async)) {
      initialize(model);
      arrays(model).forEach((path, array) -> saved.put(path, array.toFloatArray()));
      var _ = saver.save(SaveRequest.builder().setStep(5).setModel(model).build());
      // After `save` has returned, the program may change the arrays.
      arrays(model).values().forEach(array -> array.addi(1));
    }
    return saved;
  }

  private static Model model(Block block) {
    Model model = Model.newInstance("model", "PyTorch");
    model.setBlock(block);
    return model;
  }

  private static void initialize(Model model) {
    model.getBlock().initialize(model.getNDManager(), DataType.FLOAT32, INPUT);
  }

  private static Map<String, NDArray> arrays(Model model) {
    Map<String, NDArray> arrays = new LinkedHashMap<>();
    for (var pair : model.getBlock().getParameters()) {
      Parameter parameter = pair.getValue();
      arrays.put(pair.getKey(), parameter.getArray());
    }
    return arrays;
  }

  private static byte[] bytes(StoredTensor info) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate((int) info.extent().length());
    try (FileChannel channel = FileChannel.open(info.extent().file().path())) {
      channel.read(bytes, info.extent().offset());
    }
    return bytes.array();
  }

  private CheckpointSaver saver(boolean async) {
    return CheckpointSaver.builder()
        .setPath(folder)
        .optMode(async ? SaveMode.ASYNC : SaveMode.SYNC)
        .build();
  }
}
