// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.Initializer;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.ndarray.GantryNDArray;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Tensors become the parameters of DJL's blocks, before or after the blocks are initialised.
@ExtendWith(NoLeaks.class)
class ParameterLoadTest {
  private static final Map<String, String> TABLE =
      Map.of(
          "01Linear_weight", "in.weight",
          "01Linear_bias", "in.bias",
          "03Linear_weight", "out.weight",
          "03Linear_bias", "out.bias");

  private static final ParameterNames NAMES = names(TABLE);

  private static final Shape INPUT = new Shape(1, 2);

  /// The answer: relu([1, 2] · weightᵀ + 1) = [6, 12, 0], and its product with [1, 0.5, 7]ᵀ, plus
  /// 0.5.
  private static final float[] EXPECTED = {12.5f};

  @TempDir private Path folder;
  private NDManager manager;
  private SequentialBlock block;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
    block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(3).build())
            .add(Activation.reluBlock())
            .add(Linear.builder().setUnits(1).build());
  }

  @AfterEach
  void close() {
    manager.close();
  }

  @Test
  void beforeInitialisationWithoutACopy() throws IOException {
    Path file = layers(DType.F32);
    Weights weights = Weights.open(file);
    weights.load(manager, block, NAMES, LoadOptions.defaults(), INPUT);
    LiveResources.Snapshot held = NoLeaks.held();
    assertThat(held.hostBytes() + held.deviceBytes()).isPositive();
    Set<Long> shifts = new HashSet<>();
    for (var pair : block.getParameters()) {
      NDArray array = pair.getValue().getArray();
      assertThat(pair.getValue().isInitialized()).isTrue();
      assertThat(array).isInstanceOf(GantryNDArray.class);
      String tensor = TABLE.get(pair.getKey());
      long offset =
          SafetensorsOpener.open(GantrySession.shared(), file)
              .tensors()
              .get(tensor)
              .extent()
              .offset();
      shifts.add(Math.floorMod(address(array) - offset, 4096L));
    }
    // The offsets of all arrays within a page equal their offsets in the file, so the arrays lie
    // where they were read and are no copies. On a GPU all of them are shifted by the same amount,
    // so that most bytes lie at multiples of 16.
    assertThat(shifts).hasSize(1).allMatch(shift -> shift < (manager.getDevice().isGpu() ? 16 : 1));
    // DJL leaves the values unchanged, because the block is initialised already.
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    assertThat(NoLeaks.held()).isEqualTo(held);
    assertThat(forward(1, 2)).containsExactly(EXPECTED);
    block.clear();
    NoLeaks.assertNothingIsHeld();
  }

  @Test
  void afterInitialisationIntoTheSameArrays() throws IOException {
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    List<NDArray> arrays = arrays();
    List<Long> addresses = arrays.stream().map(ParameterLoadTest::address).toList();
    assertThat(arrays).allMatch(NDArray::hasGradient);
    load(layers(DType.F32), NAMES);
    for (int i = 0; i < arrays.size(); i++) {
      assertThat(arrays().get(i)).isSameAs(arrays.get(i));
    }
    assertThat(arrays().stream().map(ParameterLoadTest::address)).isEqualTo(addresses);
    assertThat(arrays).allMatch(NDArray::hasGradient);
    assertThat(forward(1, 2)).containsExactly(EXPECTED);
    // The memory of the loaded tensors was freed after their copy.
    NoLeaks.assertNothingIsHeld();
    assertGradientsFlow();
  }

  @ParameterizedTest
  @EnumSource(names = {"BF16", "F16", "F64"})
  void afterInitialisationFromAnotherFloatingPointType(DType dtype) throws IOException {
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    load(layers(dtype), NAMES);
    assertThat(arrays()).allMatch(array -> array.getDataType() == DataType.FLOAT32);
    assertThat(forward(1, 2)).containsExactly(EXPECTED);
    NoLeaks.assertNothingIsHeld();
    assertGradientsFlow();
  }

  @Test
  void castBeforeInitialisation() throws IOException {
    LoadOptions options = LoadOptions.builder().optCast(DataType.FLOAT32).build();
    Weights.open(layers(DType.BF16)).load(manager, block, NAMES, options, INPUT);
    assertThat(arrays()).allMatch(array -> array.getDataType() == DataType.FLOAT32);
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    assertThat(forward(1, 2)).containsExactly(EXPECTED);
    assertGradientsFlow();
  }

  /// DJL can make no BF16 array: a request for one ends the process.
  @ParameterizedTest
  @EnumSource(names = {"BF16", "F32"})
  void aParameterWhoseShapeIsSetTakesTheArrayToo(DType dtype) throws IOException {
    Initializer ones = Initializer.ONES;
    Parameter parameter =
        Parameter.builder()
            .setName("in.weight")
            .setType(Parameter.Type.WEIGHT)
            .optShape(new Shape(3, 2))
            .optInitializer(ones)
            .build();
    Weights.open(layers(dtype))
        .load(manager, listOf(parameter), ParameterNames.same(), LoadOptions.defaults());
    NDArray array = parameter.getArray();
    assertThat(array.getDataType()).isEqualTo(PyTorch.dataType(dtype).orElseThrow());
    assertThat(array.toFloatArray()).containsExactly(1, 2, 3, 4, -5, -6);
    assertThat(array.hasGradient()).isTrue();
    assertThat(array.getName()).isEqualTo("in.weight");
    assertThat(NoLeaks.held().slabs()).isPositive();
    assertThat(parameter.getInitializer()).isSameAs(ones);
    parameter.close();
    NoLeaks.assertNothingIsHeld();
  }

  @Test
  void theModelOfTheReferenceAnswersItsLogits() throws IOException {
    for (boolean first : new boolean[] {true, false}) {
      // The memory of a GPU cannot be mapped from a file.
      for (boolean lazy :
          manager.getDevice().isGpu() ? new boolean[1] : new boolean[] {true, false}) {
        ReferenceModel.assertAnswers(manager, first, lazy);
      }
    }
    NoLeaks.assertNothingIsHeld();
  }

  @Test
  void aTensorForTwoParameters() throws IOException {
    SequentialBlock twins =
        new SequentialBlock()
            .add(Linear.builder().setUnits(2).optBias(false).build())
            .add(Linear.builder().setUnits(2).optBias(false).build());
    Path file =
        new WeightsFile()
            .tensor("tied", DType.F32, TensorShape.of(2, 2), 0, 1, 1, 1)
            .write(folder.resolve("tied.safetensors"));
    Weights.open(file)
        .load(
            manager,
            twins,
            ParameterNames.of(Map.of("01Linear_weight", "tied", "02Linear_weight", "tied")),
            LoadOptions.defaults(),
            INPUT);
    Parameter first = twins.getParameters().valueAt(0);
    Parameter second = twins.getParameters().valueAt(1);
    assertThat(address(first.getArray())).isEqualTo(address(second.getArray()));
    twins.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    assertThat(forward(twins, 3, 5)).containsExactly(8, 13);
    first.close();
    assertThat(second.getArray().toFloatArray()).containsExactly(0, 1, 1, 1);
    second.close();
    NoLeaks.assertNothingIsHeld();
  }

  @Test
  void aParameterThatIsLeftOutStaysAsItIs() throws IOException {
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    NDArray bias = block.getParameters().get("03Linear_bias").getArray();
    float before = bias.getFloat(0);
    Map<String, String> table = new HashMap<>(TABLE);
    table.remove("03Linear_bias");
    ParameterNames names = ParameterNames.of(table);
    Path file = layers(DType.F32);
    assertThatThrownBy(() -> load(file, names))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("'03Linear_bias'", "optPartial(true)");
    LoadOptions partial = LoadOptions.builder().optPartial(true).build();
    LoadReport report = Weights.open(file).load(manager, block, names, partial);
    assertThat(report.missing()).containsExactly("03Linear_bias");
    assertThat(report.unexpected()).containsExactly("out.bias", "count", "tiny");
    assertThat(bias.getFloat(0)).isEqualTo(before).isNotEqualTo(0.5f);
    assertThat(block.getParameters().get("01Linear_bias").getArray().toFloatArray())
        .containsExactly(1, 1, 1);
  }

  @Test
  void aParameterThatTheTableLacks() throws IOException {
    Path file = layers(DType.F32);
    assertRefused(
        file, ParameterNames.of(Map.of("01Linear_weight", "in.weight")), "'01Linear_bias'");
  }

  @Test
  void aTensorThatIsNotThere() throws IOException {
    Path file = layers(DType.F32);
    assertRefused(file, renamed("03Linear_bias", "out.bia"), "out.bia", "out.bias");
  }

  @Test
  void aShapeThatDoesNotFit() throws IOException {
    Map<String, String> table = new HashMap<>(TABLE);
    table.put("03Linear_weight", "in.weight");
    table.put("01Linear_weight", "out.weight");
    assertRefused(
        layers(DType.F32), names(table), "[1, 3]", "[3, 2]", "'01Linear_weight' -> 'out.weight'");
  }

  @Test
  void aTypeThatDoesNotFit() throws IOException {
    assertRefused(
        layers(DType.F32), renamed("03Linear_bias", "count"), "'count'", "I32", "float32");
  }

  @Test
  void aTypeThatDjlDoesNotHold() throws IOException {
    assertRefused(layers(DType.F32), renamed("03Linear_bias", "tiny"), "'tiny'", "F8_E8M0");
  }

  @Test
  void aFailedReadChangesNoParameter() throws IOException {
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    List<float[]> before = arrays().stream().map(NDArray::toFloatArray).toList();
    Weights weights = Weights.open(layers(DType.F32));
    LoadOptions options =
        LoadOptions.builder()
            .optReport(_ -> {
              throw new IllegalStateException("after the last read");
            })
            .build();
    assertThatThrownBy(() -> weights.load(manager, block, NAMES, options))
        .isInstanceOf(IllegalStateException.class);
    assertThat(arrays().stream().map(NDArray::toFloatArray).toList())
        .usingRecursiveComparison()
        .isEqualTo(before);
    NoLeaks.assertNothingIsHeld();
  }

  /// Returns [#NAMES] with another tensor for one parameter.
  private static ParameterNames renamed(String parameter, String tensor) {
    Map<String, String> table = new HashMap<>(TABLE);
    table.put(parameter, tensor);
    return names(table);
  }

  /// Returns names that ignore the file's further tensors.
  private static ParameterNames names(Map<String, String> table) {
    ParameterNames.Builder builder = ParameterNames.builder();
    table.forEach((parameter, tensor) -> builder.rule(parameter, tensor));
    return builder.ignore("count").ignore("tiny").ignore("out.{any}").ignore("in.{any}").build();
  }

  private void assertRefused(Path file, ParameterNames names, String... words) {
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 2));
    List<float[]> before = arrays().stream().map(NDArray::toFloatArray).toList();
    int managed = manager.getManagedArrays().size();
    assertThatThrownBy(() -> load(file, names))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll(words);
    // The check comes before values are read, because DJL leaves copies of a GPU's values with the
    // manager.
    assertThat(manager.getManagedArrays()).hasSize(managed);
    assertThat(arrays().stream().map(NDArray::toFloatArray).toList())
        .usingRecursiveComparison()
        .isEqualTo(before);
    NoLeaks.assertNothingIsHeld();
  }

  private Path layers(DType dtype) throws IOException {
    return new WeightsFile()
        .tensor("in.weight", dtype, TensorShape.of(3, 2), 1, 2, 3, 4, -5, -6)
        .vector("in.bias", dtype, 1, 1, 1)
        .tensor("out.weight", dtype, TensorShape.of(1, 3), 1, 0.5, 7)
        .vector("out.bias", dtype, 0.5)
        .vector("count", DType.I32, 4)
        .raw("tiny", DType.F8_E8M0, TensorShape.of(1), (byte) 1)
        .write(folder.resolve("layers-" + dtype + ".safetensors"));
  }

  private void load(Path file, ParameterNames names) {
    try (Weights weights = Weights.open(file)) {
      weights.load(manager, block, names, LoadOptions.defaults());
    }
  }

  private List<NDArray> arrays() {
    return block.getParameters().values().stream().map(Parameter::getArray).toList();
  }

  private static ParameterList listOf(Parameter parameter) {
    ParameterList list = new ParameterList();
    list.add(parameter.getName(), parameter);
    return list;
  }

  private float[] forward(float... input) {
    return forward(block, input);
  }

  private float[] forward(Block model, float... input) {
    try (NDManager scope = manager.newSubManager()) {
      NDArray batch = scope.create(input, new Shape(1, input.length));
      return model
          .forward(new ParameterStore(manager, false), new NDList(batch), false)
          .singletonOrThrow()
          .toFloatArray();
    }
  }

  private void assertGradientsFlow() {
    try (GradientCollector collector = Engine.getInstance().newGradientCollector();
        NDManager scope = manager.newSubManager()) {
      NDArray batch = scope.create(new float[] {1, 2}, new Shape(1, 2));
      NDArray output =
          block
              .forward(new ParameterStore(manager, false), new NDList(batch), true)
              .singletonOrThrow();
      collector.backward(output.sum());
      NDArray gradient = block.getParameters().get("03Linear_weight").getArray().getGradient();
      assertThat(gradient.toFloatArray()).containsExactly(6, 12, 0);
    }
  }

  private static long address(NDArray array) {
    return PyTorch.library().address(((PtNDArray) array).getHandle());
  }
}
