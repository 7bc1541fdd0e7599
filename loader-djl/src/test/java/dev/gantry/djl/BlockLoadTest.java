// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.LambdaBlock;
import ai.djl.nn.ParallelBlock;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.norm.LayerNorm;
import ai.djl.nn.recurrent.LSTM;
import ai.djl.nn.transformer.BertBlock;
import ai.djl.nn.transformer.TransformerEncoderBlock;
import ai.djl.training.initializer.NormalInitializer;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/// A block of any layers that was never initialised predicts right after the load.
@ExtendWith(NoLeaks.class)
class BlockLoadTest {
  private static final LoadOptions DEFAULTS = LoadOptions.defaults();
  private static final LoadOptions PARTIAL = LoadOptions.builder().optPartial(true).build();
  private static final Shape INPUT = new Shape(1, 4);

  @TempDir private Path folder;
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
  }

  @AfterEach
  void close() {
    manager.close();
  }

  /// @param inputs makes the inputs of one prediction
  private record Architecture(
      String name, Supplier<Block> block, Function<NDManager, NDList> inputs) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Architecture> architectures() {
    return Stream.of(
        new Architecture("LayerNorm", () -> LayerNorm.builder().build(), floats(2, 4)),
        new Architecture("nested", BlockLoadTest::nested, floats(2, 4)),
        new Architecture("convolutions", BlockLoadTest::convolutions, floats(2, 3, 8, 8)),
        new Architecture(
            "LSTM", () -> LSTM.builder().setStateSize(5).setNumLayers(2).build(), floats(2, 3, 4)),
        new Architecture(
            "TransformerEncoderBlock",
            () -> new TransformerEncoderBlock(8, 2, 16, 0.1f, Activation::gelu),
            floats(2, 3, 8)),
        new Architecture("BertBlock", BlockLoadTest::bert, BlockLoadTest::tokens));
  }

  @Test
  void aBlockWhoseArraysAreClosedIsRefused() throws IOException {
    Block block = Linear.builder().setUnits(3).build();
    Path file;
    try (NDManager closed = manager.newSubManager()) {
      block.initialize(closed, DataType.FLOAT32, INPUT);
      file = save(block, DType.F32);
    }
    try (Weights weights = Weights.open(file)) {
      assertThatThrownBy(() -> weights.load(manager, block, ParameterNames.same(), DEFAULTS))
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "the array of parameter 'weight' is closed; its model or manager must stay open");
    }
  }

  @ParameterizedTest
  @MethodSource("architectures")
  void aLoadedBlockPredictsAsTheSavedOne(Architecture architecture)
      throws IOException, TranslateException {
    try (NDManager inputs = manager.newSubManager()) {
      NDList question = architecture.inputs().apply(inputs);
      Block saved = architecture.block().get();
      saved.setInitializer(new NormalInitializer(0.3f), _ -> true);
      saved.initialize(manager, DataType.FLOAT32, question.getShapes());
      // The variance must not be negative.
      saved.getParameters().values().stream()
          .filter(parameter -> parameter.getType() == Parameter.Type.RUNNING_VAR)
          .forEach(parameter -> parameter.getArray().muli(parameter.getArray()));

      try (Model model = Model.newInstance("loaded");
          Weights weights = Weights.open(save(saved, DType.F32))) {
        model.setBlock(architecture.block().get());
        LoadReport report =
            weights.load(
                model.getNDManager(),
                model.getBlock(),
                ParameterNames.same(),
                DEFAULTS,
                question.getShapes());
        assertThat(report.loaded().keySet())
            .containsExactlyElementsOf(saved.getParameters().keys());
        assertThat(report.missing()).isEmpty();
        assertThat(report.unexpected()).isEmpty();
        assertThat(model.getBlock().isInitialized()).isTrue();
        assertClose(predict(model, question), predict(inputs, saved, question));
      }
    }
  }

  @Test
  void aBlockThatIsNotInitialisedNeedsTheShapesOfItsInputs() throws IOException {
    Block block = normed();
    assertThatThrownBy(() -> load(savedNormed(DType.F32), block, ParameterNames.same(), DEFAULTS))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("not initialised", "shapes of its inputs", "new Shape(1, 64)");
    assertUntouched(block);
  }

  @Test
  void shapesThatTheBlockCannotHaveAreNamed() throws IOException {
    Block block = normed();
    assertThatThrownBy(() ->
            load(savedNormed(DType.F32), block, ParameterNames.same(), DEFAULTS, INPUT, INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("cannot be initialised", "[(1, 4), (1, 4)]", "1 input");
    assertUntouched(block);
  }

  @Test
  void aTransposedWeightIsRefusedWithBothShapes() throws IOException {
    Path file =
        new WeightsFile()
            .raw("01Linear_weight", DType.F32, shape(4, 3), new byte[48])
            .raw("01Linear_bias", DType.F32, shape(3), new byte[12])
            .raw("02LayerNorm_gamma", DType.F32, shape(3), new byte[12])
            .raw("02LayerNorm_beta", DType.F32, shape(3), new byte[12])
            .write(folder.resolve("transposed.safetensors"));
    Block block = normed();
    assertThatThrownBy(() -> load(file, block, ParameterNames.same(), DEFAULTS, INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("'01Linear_weight'", "[4, 3]", "[3, 4]", "looks transposed");
    assertUntouched(block);
  }

  @Test
  void integersForWeightsAreRefused() throws IOException {
    Path file =
        new WeightsFile()
            .raw("01Linear_weight", DType.F32, shape(3, 4), new byte[48])
            .raw("01Linear_bias", DType.I32, shape(3), new byte[12])
            .raw("02LayerNorm_gamma", DType.F32, shape(3), new byte[12])
            .raw("02LayerNorm_beta", DType.F32, shape(3), new byte[12])
            .write(folder.resolve("integers.safetensors"));
    Block block = normed();
    assertThatThrownBy(() -> load(file, block, ParameterNames.same(), DEFAULTS, INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("'01Linear_bias'", "I32", "floating-point");
    assertUntouched(block);
  }

  @Test
  void parametersWithoutATensorAreAllNamed() throws IOException {
    Path file =
        new WeightsFile()
            .raw("01Linear_weight", DType.F32, shape(3, 4), new byte[48])
            .raw("01Linear_bias", DType.F32, shape(3), new byte[12])
            .write(folder.resolve("part.safetensors"));
    Block block = normed();
    assertThatThrownBy(() -> load(file, block, ParameterNames.same(), DEFAULTS, INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll(
            "no tensor", "'02LayerNorm_gamma'", "'02LayerNorm_beta'", "optPartial(true)");
    assertUntouched(block);
  }

  @Test
  void aPartialLoadInitialisesTheRestAndReportsIt() throws IOException {
    Path file =
        new WeightsFile()
            .vector("in.bias", DType.F32, 1, 2, 3)
            .vector("other", DType.F32, 1)
            .vector("tracked", DType.I64, 1)
            .write(folder.resolve("part.safetensors"));
    Block block = normed();
    LoadReport report =
        load(file, block, ParameterNames.of(Map.of("01Linear_bias", "in.bias")), PARTIAL, INPUT);
    assertThat(report.loaded()).isEqualTo(Map.of("01Linear_bias", "in.bias"));
    assertThat(report.missing())
        .containsExactly("01Linear_weight", "02LayerNorm_gamma", "02LayerNorm_beta");
    assertThat(report.unexpected()).containsExactly("other", "tracked");
    assertThat(values(block, "01Linear_bias")).containsExactly(1, 2, 3);
    assertThat(values(block, "02LayerNorm_gamma")).containsExactly(1, 1, 1);
    assertThat(predict(manager, block, new NDList(manager.ones(INPUT)))).hasSize(1);
  }

  @ParameterizedTest
  @EnumSource(names = {"BF16", "F16", "F64"})
  void otherFloatingPointTypesBecomeTheBlocks(DType dtype) throws IOException {
    Block block = normed();
    load(savedNormed(dtype), block, ParameterNames.same(), DEFAULTS, INPUT);
    assertThat(block.getParameters().values())
        .allMatch(parameter -> parameter.getArray().getDataType() == DataType.FLOAT32);
    assertThat(predict(manager, block, new NDList(manager.ones(INPUT)))).hasSize(1);
  }

  @Test
  void bf16OnRequestAlsoWhereDjlInitialises() throws IOException {
    LoadOptions options = LoadOptions.builder().optCast(DataType.BFLOAT16).optPartial(true).build();
    Block block = normed();
    Path file =
        new WeightsFile()
            .raw("01Linear_weight", DType.BF16, shape(3, 4), new byte[24])
            .vector("01Linear_bias", DType.F32, 1, 2, 3)
            .write(folder.resolve("mixed.safetensors"));
    load(file, block, ParameterNames.same(), options, INPUT);
    assertThat(block.getParameters().values())
        .allMatch(parameter -> parameter.getArray().getDataType() == DataType.BFLOAT16);
    // Nothing stays of the arrays that are cast.
    assertThat(manager.getManagedArrays()).hasSize(block.getParameters().size());
    assertThat(values(block, "02LayerNorm_gamma")).containsExactly(1, 1, 1);
  }

  @Test
  void aLoadThatFailsCanBeMadeAgain() throws IOException {
    Block block = normed();
    Path file = savedNormed(DType.F32);
    LoadOptions failing =
        LoadOptions.builder()
            .optReport(_ -> {
              throw new IllegalStateException("after the last read");
            })
            .build();
    assertThatThrownBy(() -> load(file, block, ParameterNames.same(), failing, INPUT))
        .isInstanceOf(IllegalStateException.class);
    assertUntouched(block);
    load(file, block, ParameterNames.same(), DEFAULTS, INPUT);
    assertThat(block.isInitialized()).isTrue();
  }

  @Test
  void anInitialisedBlockNeedsNoShapes() throws IOException {
    Block block = normed();
    block.initialize(manager, DataType.FLOAT32, INPUT);
    assertThat(load(savedNormed(DType.F32), block, ParameterNames.same(), DEFAULTS).missing())
        .isEmpty();
  }

  @Test
  void parametersThatWereLoadedOneByOneAreInitialisedByTheLoad() throws IOException {
    Path file = savedNormed(DType.F32);
    Block block = normed();
    try (Weights weights = Weights.open(file)) {
      weights.load(manager, block.getParameters(), ParameterNames.same(), DEFAULTS);
    }
    assertThat(block.isInitialized()).isFalse();
    load(file, block, ParameterNames.same(), DEFAULTS, INPUT);
    assertThat(predict(manager, block, new NDList(manager.ones(INPUT)))).hasSize(1);
  }

  @Test
  void aTableWithEntriesForOtherParametersIsRefused() throws IOException {
    Block block = normed();
    ParameterNames names = ParameterNames.of(Map.of("01Linear_wieght", "01Linear_weight"));
    assertThatThrownBy(() -> load(savedNormed(DType.F32), block, names, PARTIAL, INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("'01Linear_wieght'", "'01Linear_weight'");
    assertUntouched(block);
  }

  @Test
  void anEmptyTableIsRefused() {
    assertThatThrownBy(() -> ParameterNames.of(Map.of()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("empty");
  }

  @Test
  void aSelectionIsRefused() throws IOException {
    LoadOptions options =
        LoadOptions.builder()
            .optSelection(dev.gantry.djl.TensorSelection.names(List.of("01Linear_bias")))
            .build();
    Block block = normed();
    assertThatThrownBy(
            () -> load(savedNormed(DType.F32), block, ParameterNames.same(), options, INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optSelection");
    assertUntouched(block);
  }

  @Test
  void closedWeightsLoadNothing() throws IOException {
    Weights weights = Weights.open(savedNormed(DType.F32));
    weights.close();
    Block block = normed();
    assertThatThrownBy(() -> weights.load(manager))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("weights are closed");
    assertThatThrownBy(() -> weights.load(manager, block, ParameterNames.same(), DEFAULTS, INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("weights are closed");
    assertUntouched(block);
  }

  @Test
  void aParameterWithTwoPathsTakesOneTensor() throws IOException {
    Linear shared = Linear.builder().setUnits(4).optBias(false).build();
    Block block = new SequentialBlock().add(shared).add(shared);
    Path file =
        new WeightsFile()
            .raw("one", DType.F32, shape(4, 4), new byte[64])
            .raw("two", DType.F32, shape(4, 4), new byte[64])
            .write(folder.resolve("shared.safetensors"));
    assertThatThrownBy(() ->
            load(
                file,
                block,
                ParameterNames.of(Map.of("01Linear_weight", "one", "02Linear_weight", "two")),
                DEFAULTS,
                INPUT))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("'two'", "'02Linear_weight'", "'01Linear_weight'", "'one'");
    assertUntouched(block);
    // The table may name the parameter under only one of its paths.
    LoadReport once =
        load(file, block, ParameterNames.of(Map.of("02Linear_weight", "two")), PARTIAL, INPUT);
    assertThat(once.loaded()).isEqualTo(Map.of("02Linear_weight", "two"));
    assertThat(once.missing()).isEmpty();
  }

  /// Returns a Linear and a LayerNorm, which fails if it is not initialised.
  private static Block normed() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(3).build())
        .add(LayerNorm.builder().build());
  }

  private static Block nested() {
    return new SequentialBlock()
        .add(
            new ParallelBlock(
                    outputs -> new NDList(outputs.get(0).head().add(outputs.get(1).head())))
                .add(normed())
                .add(
                    new SequentialBlock()
                        .add(LambdaBlock.singleton(array -> array.mul(2)))
                        .add(normed())))
        .add(LambdaBlock.singleton(array -> array.concat(array, 1)))
        .add(Linear.builder().setUnits(2).build())
        .add(BatchNorm.builder().build());
  }

  /// Returns convolutions with a residual connection.
  private static Block convolutions() {
    Block residual =
        new ParallelBlock(outputs -> new NDList(outputs.get(0).head().add(outputs.get(1).head())))
            .add(new SequentialBlock().add(convolution()).add(BatchNorm.builder().build()))
            .add(convolution());
    return new SequentialBlock()
        .add(residual)
        .add(Activation.reluBlock())
        .add(ai.djl.nn.Blocks.batchFlattenBlock())
        .add(Linear.builder().setUnits(3).build());
  }

  private static Block convolution() {
    return Conv2d.builder()
        .setKernelShape(new Shape(3, 3))
        .optPadding(new Shape(1, 1))
        .setFilters(4)
        .build();
  }

  private static Block bert() {
    return BertBlock.builder()
        .setTokenDictionarySize(11)
        .optTypeDictionarySize(2)
        .optEmbeddingSize(8)
        .optTransformerBlockCount(2)
        .optAttentionHeadCount(2)
        .optHiddenSize(16)
        .optMaxSequenceLength(5)
        .build();
  }

  private static NDList tokens(NDManager manager) {
    Shape shape = new Shape(2, 5);
    return new NDList(
        manager.create(new long[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, shape),
        manager.create(new long[] {0, 0, 0, 1, 1, 0, 0, 1, 1, 1}, shape),
        manager.create(new long[] {1, 1, 1, 1, 0, 1, 1, 1, 1, 1}, shape));
  }

  private static Function<NDManager, NDList> floats(long... dimensions) {
    Shape shape = new Shape(dimensions);
    return manager ->
        new NDList(manager.arange((float) shape.size()).reshape(shape).div(shape.size()));
  }

  private Path savedNormed(DType dtype) throws IOException {
    Block saved = normed();
    saved.initialize(manager, DataType.FLOAT32, INPUT);
    return save(saved, dtype);
  }

  private Path save(Block block, DType dtype) throws IOException {
    WeightsFile file = new WeightsFile();
    for (var pair : block.getParameters()) {
      NDArray array = pair.getValue().getArray();
      float[] floats = array.toFloatArray();
      double[] values = new double[floats.length];
      Arrays.setAll(values, i -> floats[i]);
      file.tensor(pair.getKey(), dtype, shape(array.getShape().getShape()), values);
    }
    return file.write(folder.resolve("saved.safetensors"));
  }

  private static TensorShape shape(long... dimensions) {
    return TensorShape.of(dimensions);
  }

  private LoadReport load(
      Path file, Block block, ParameterNames names, LoadOptions options, Shape... inputs) {
    try (Weights weights = Weights.open(file)) {
      return weights.load(manager, block, names, options, inputs);
    }
  }

  private static List<float[]> predict(NDManager manager, Block block, NDList inputs) {
    try (Model model = Model.newInstance("saved", manager.getDevice())) {
      model.setBlock(block);
      return predict(model, inputs);
    } catch (TranslateException e) {
      throw new AssertionError(e);
    }
  }

  private static List<float[]> predict(Model model, NDList inputs) throws TranslateException {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
        NDList outputs = predictor.predict(new NDList(inputs))) {
      return outputs.stream().map(NDArray::toFloatArray).toList();
    }
  }

  /// The kernels of a GPU may add in another order each time.
  private static void assertClose(List<float[]> actual, List<float[]> expected) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int i = 0; i < expected.size(); i++) {
      assertThat(actual.get(i)).hasSameSizeAs(expected.get(i));
      for (int j = 0; j < expected.get(i).length; j++) {
        float value = expected.get(i)[j];
        assertThat(actual.get(i)[j]).isCloseTo(value, within(1e-5f * Math.max(1, Math.abs(value))));
      }
    }
  }

  private static float[] values(Block block, String parameter) {
    return block.getParameters().get(parameter).getArray().toFloatArray();
  }

  private static void assertUntouched(Block block) {
    assertThat(block.isInitialized()).isFalse();
    assertThat(block.getParameters().values())
        .allMatch(parameter -> !parameter.isInitialized() && parameter.getShape() == null);
    NoLeaks.assertNothingIsHeld();
  }
}
