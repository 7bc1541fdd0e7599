// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static dev.gantry.formats.TensorTransform.pad;
import static dev.gantry.formats.TensorTransform.part;
import static dev.gantry.formats.TensorTransform.reshape;
import static dev.gantry.formats.TensorTransform.slice;
import static dev.gantry.formats.TensorTransform.transpose;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.ParameterStore;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.TensorTransform;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Rules that made parameters from tensors make the same tensors from the parameters.
@ExtendWith(NoLeaks.class)
class WeightsExportTest {
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

  static Stream<ParameterRulesFixture.Case> cases() {
    return ParameterRulesTest.cases();
  }

  /// Returns the transforms of a case, and further transforms for the parts that the case leaves
  /// out.
  private static List<List<TensorTransform>> all(
      List<TensorTransform> transforms, TensorShape tensor) {
    List<List<TensorTransform>> all = new ArrayList<>(List.of(List.of()));
    TensorShape shape = tensor;
    for (TensorTransform transform : transforms) {
      List<TensorTransform> parts =
          switch (transform) {
            case TensorTransform.Part(int axis, _, int count) ->
                IntStream.range(0, count).mapToObj(i -> part(axis, i, count)).toList();
            case TensorTransform.Slice(int axis, long from, long to) ->
                List.of(slice(axis, 0, from), transform, slice(axis, to, shape.dimension(axis)));
            case TensorTransform.Permute _, TensorTransform.Reshape _, TensorTransform.Pad _ ->
                List.of(transform);
          };
      shape = transform.apply(shape);
      all =
          all.stream()
              .flatMap(before ->
                  parts.stream()
                      .map(part -> Stream.concat(before.stream(), Stream.of(part)).toList()))
              .toList();
    }
    return all;
  }

  @ParameterizedTest
  @MethodSource("cases")
  void whatIsWrittenIsTheFile(ParameterRulesFixture.Case each) throws IOException {
    for (DType dtype : List.of(DType.F32, DType.BF16)) {
      roundTrip(each, dtype);
    }
  }

  private void roundTrip(ParameterRulesFixture.Case each, DType dtype) throws IOException {
    TensorShape shape = PyTorch.shape(each.tensor());
    double[] values =
        IntStream.range(0, Math.toIntExact(each.tensor().size()))
            .mapToDouble(i -> i % 251)
            .toArray();
    Path original =
        new WeightsFile()
            .tensor("t", dtype, shape, values)
            .write(folder.resolve(dtype + ".safetensors"));
    Path copy = folder.resolve("copy").resolve(dtype + ".safetensors");
    ParameterNames.Builder builder = ParameterNames.builder();
    List<List<TensorTransform>> parts = all(each.transforms(), shape);
    for (int i = 0; i < parts.size(); i++) {
      builder.rule("p" + i, "t", parts.get(i).toArray(TensorTransform[]::new));
    }
    ParameterNames names = builder.build();
    ParameterList parameters = parameters(parts.size());
    ParameterList again = parameters(parts.size());
    load(original, parameters, names);
    boolean isOpen =
        each.transforms().stream()
            .anyMatch(transform ->
                transform instanceof TensorTransform.Reshape
                    || transform instanceof TensorTransform.Pad);
    if (isOpen) {
      assertRefused(parameters, names, "'t'", "'p0' -> 't'", "optLike");
    } else {
      WeightsWriter.builder().setFile(copy).build().write(parameters, names);
      assertSameFile(original, copy);
    }
    int before = manager.getManagedArrays().size();
    try (Weights like = Weights.open(original)) {
      WeightsWriter.builder().setFile(copy).optLike(like).build().write(parameters, names);
    }
    assertThat(manager.getManagedArrays()).hasSize(before);
    assertSameFile(original, copy);
    load(copy, again, names);
    for (String name : parameters.keys()) {
      assertThat(floats(again.get(name).getArray()))
          .isEqualTo(floats(parameters.get(name).getArray()));
    }
  }

  private void assertSameFile(Path one, Path other) {
    try (Weights first = Weights.open(one);
        Weights second = Weights.open(other);
        NDManager scope = manager.newSubManager()) {
      assertThat(second.tensors()).isEqualTo(first.tensors());
      NDList copies = second.load(scope);
      for (NDArray array : first.load(scope)) {
        assertThat(floats(copies.get(array.getName())))
            .as(array.getName())
            .isEqualTo(floats(array));
      }
    }
  }

  private static float[] floats(NDArray array) {
    try (NDArray floats = array.toType(DataType.FLOAT32, true)) {
      return floats.toFloatArray();
    }
  }

  @Test
  void aTransformersTensors() throws IOException {
    ParameterNames names =
        ParameterNames.builder()
            .rule("{i}Layer_query", "h.{i-1}.c_attn", transpose(), part(0, 0, 3))
            .rule("{i}Layer_key", "h.{i-1}.c_attn", transpose(), part(0, 1, 3))
            .rule("{i}Layer_value", "h.{i-1}.c_attn", transpose(), part(0, 2, 3))
            .rule("embedding", "wte")
            .tie("head", "embedding")
            .constant("beta", 1)
            .concat("gateAndUp", 0, List.of("gate", "up"))
            .ignore("h.{i}.bias")
            .optPrefix("transformer.")
            .build();
    WeightsFile file = new WeightsFile();
    for (int layer = 0; layer < 2; layer++) {
      double first = layer * 100;
      file.tensor(
              "transformer.h." + layer + ".c_attn",
              DType.F32,
              PyTorch.shape(new Shape(2, 6)),
              IntStream.range(0, 12).mapToDouble(i -> first + i).toArray())
          .vector("transformer.h." + layer + ".bias", DType.U8, 1);
    }
    Path original =
        file.tensor("transformer.wte", DType.F32, PyTorch.shape(new Shape(2, 2)), 1, 2, 3, 4)
            .vector("gate", DType.F32, 1, 2)
            .vector("up", DType.F32, 3, 4)
            .write(folder.resolve("gpt2.safetensors"));
    ParameterList parameters =
        parameters(
            "01Layer_query",
            "01Layer_key",
            "01Layer_value",
            "02Layer_query",
            "02Layer_key",
            "02Layer_value",
            "embedding",
            "head",
            "gateAndUp");
    parameters.add(
        "beta",
        Parameter.builder()
            .setName("beta")
            .setType(Parameter.Type.BETA)
            .optShape(new Shape(2))
            .build());
    load(original, parameters, names);
    parameters.get("embedding").getArray().addi(1);
    Path target = folder.resolve("exported");
    WeightsWriter.builder().setFolder(target).build().write(parameters, names);
    try (Weights written = Weights.open(target)) {
      NDList arrays = written.load(manager);
      assertThat(written.tensors().keySet())
          .containsExactlyInAnyOrder("h.0.c_attn", "h.1.c_attn", "wte", "gate", "up");
      assertThat(floats(arrays.get("h.1.c_attn"))).isEqualTo(floats(manager.arange(100f, 112f)));
      assertThat(arrays.get("h.1.c_attn").getShape()).isEqualTo(new Shape(2, 6));
      assertThat(floats(arrays.get("wte"))).containsExactly(2, 3, 4, 5);
      assertThat(floats(arrays.get("up"))).containsExactly(3, 4);
    }
    parameters.get("head").close();
    parameters.get("head").setInitializer((scope, shape, type) -> scope.zeros(shape, type));
    parameters.get("head").initialize(manager, DataType.FLOAT32);
    parameters.get("embedding").getArray().set(new float[] {0, Float.NaN, 0, 0});
    parameters.get("head").getArray().set(new float[] {0, Float.NaN, 0, 0});
    Path equal = folder.resolve("equal");
    WeightsWriter.builder().setFolder(equal).build().write(parameters, names);
    parameters.get("head").close();
    parameters.get("head").initialize(manager, DataType.FLOAT32);
    assertRefused(parameters, names, "'head'", "tied to 'embedding'", "other values");
  }

  @Test
  void unequalTensorsOfAConcatenation() throws IOException {
    Path original =
        new WeightsFile()
            .vector("model.q", DType.F32, 1, 2, 3, 4)
            .vector("model.k", DType.F32, 5)
            .vector("model.v", DType.F32, 6)
            .write(folder.resolve("qkv.safetensors"));
    ParameterNames names =
        ParameterNames.builder()
            .concat("qkv", 0, List.of("q", "k", "v"))
            .optPrefix("model.")
            .build();
    ParameterList parameters = parameters("qkv");
    load(original, parameters, names);
    Path copy = folder.resolve("copy.safetensors");
    try (Weights like = Weights.open(original)) {
      WeightsWriter.builder().setFile(copy).optLike(like).build().write(parameters, names);
    }
    try (Weights written = Weights.open(copy)) {
      assertThat(floats(written.load(manager).get("model.q"))).containsExactly(1, 2, 3, 4);
      assertThat(floats(written.load(manager).get("model.v"))).containsExactly(6);
    }
    assertRefusedLike(
        new WeightsFile().vector("model.q", DType.F32, 1, 2, 3),
        parameters,
        names,
        "the tensors are less than the parameter's [6]");
    assertRefusedLike(
        new WeightsFile().vector("model.q", DType.F32, 1, 2, 3, 4, 5),
        parameters,
        names,
        "the tensors need more than the parameter's [6]");
    ParameterNames two =
        ParameterNames.builder().concat("qkv", 0, List.of("a", "b", "c", "d")).build();
    assertRefused(parameters, two, "'qkv' -> concatenation of [a, b, c, d]", "4 equal", "optLike");
  }

  @Test
  void whatCannotBeWritten() throws IOException {
    ParameterList parameters = parameters("p", "q");
    assertRefused(parameters, ParameterNames.same(), "'p'", "no array");
    Path file =
        new WeightsFile()
            .vector("p", DType.F32, 1, 2)
            .vector("q", DType.F32, 3, 4)
            .write(folder.resolve("two.safetensors"));
    load(file, parameters, ParameterNames.same());
    assertRefused(
        parameters, ParameterNames.builder().rule("p", "t").build(), "no rule", "parameter 'q'");
    assertRefused(
        parameters,
        ParameterNames.builder().rule("p", "t").restByOrder().build(),
        "no rule",
        "parameter 'q'");
    assertRefused(
        parameters,
        ParameterNames.builder().rule("p", "t").rule("q", "t").build(),
        "'q'",
        "'t'",
        "'p' is the same part");
    assertRefused(
        parameters,
        ParameterNames.builder()
            .rule("p", "t", slice(0, 0, 2))
            .rule("q", "t", slice(0, 1, 3))
            .build(),
        "'p' is the same part");
    assertRefused(
        parameters,
        ParameterNames.builder()
            .rule("p", "t", slice(0, 0, 2))
            .rule("q", "t", slice(0, 3, 5))
            .build(),
        "4 of the 5 elements");
    assertRefused(
        parameters,
        ParameterNames.builder()
            .rule("p", "t", part(0, 0, 3))
            .rule("q", "t", part(0, 1, 3))
            .build(),
        "4 of the 6 elements");
    assertRefused(
        parameters,
        ParameterNames.builder()
            .rule("p", "t", part(0, 0, 2))
            .rule("q", "t", part(0, 1, 3))
            .build(),
        "another shape",
        "'p'");
    assertRefused(
        parameters,
        ParameterNames.builder().rule("p", "s", transpose()).rule("q", "t").build(),
        "transpose needs 2 axes");
    assertRefused(
        parameters,
        ParameterNames.builder().rule("p", "s", reshape(2)).rule("q", "t").build(),
        "reshape[2]",
        "optLike");
    assertRefused(
        parameters,
        ParameterNames.builder().rule("p", "s", pad(0, 2)).rule("q", "t").build(),
        "along axis 0",
        "optLike");
    Path other =
        new WeightsFile()
            .vector("p", DType.F32, 1, 2, 3)
            .vector("q", DType.F32, 3)
            .write(folder.resolve("other.safetensors"));
    try (Weights like = Weights.open(other)) {
      WeightsWriter writer =
          WeightsWriter.builder().setFile(folder.resolve("no")).optLike(like).build();
      assertThatThrownBy(() -> writer.write(parameters, ParameterNames.same()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContainingAll("'p'", "[3]", "[2]");
    }
  }

  @Test
  void aRestoredTrainingIsExportedAndAnswersEqually() {
    ParameterNames names =
        ParameterNames.builder().rule("{i}Linear_{kind}", "layers.{i-1}.{kind}").build();
    Path target = folder.resolve("exported");
    float[] expected;
    try (Model model = model();
        Trainer trainer = trainer(model);
        CheckpointSaver saver = saver()) {
      var _ = saver.save(1, model, trainer);
      expected = answer(model);
    }
    try (Model model = model();
        Trainer trainer = trainer(model);
        CheckpointSaver saver = saver()) {
      assertThat(answer(model)).isNotEqualTo(expected);
      saver.restoreLatest(model, trainer);
      WeightsWriter.builder().setFolder(target).build().write(model.getBlock(), names);
    }
    try (Model model = model();
        Weights weights = Weights.open(target)) {
      assertThat(weights.tensors().keySet())
          .containsExactlyInAnyOrder(
              "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias");
      weights.load(
          model.getNDManager(), model.getBlock(), names, LoadOptions.defaults(), new Shape(1, 3));
      assertThat(answer(model)).isEqualTo(expected);
    }
  }

  private CheckpointSaver saver() {
    return CheckpointSaver.builder().setPath(folder.resolve("run")).build();
  }

  private static Model model() {
    Model model = Model.newInstance("small");
    model.setBlock(
        new SequentialBlock()
            .add(Linear.builder().setUnits(4).build())
            .add(Linear.builder().setUnits(2).build()));
    return model;
  }

  private static Trainer trainer(Model model) {
    Trainer trainer = model.newTrainer(new DefaultTrainingConfig(Loss.l2Loss()));
    trainer.initialize(new Shape(1, 3));
    return trainer;
  }

  private static float[] answer(Model model) {
    try (NDManager scope = model.getNDManager().newSubManager()) {
      return model
          .getBlock()
          .forward(
              new ParameterStore(scope, false),
              new NDList(scope.create(new float[][] {{1, 2, 3}})),
              false)
          .singletonOrThrow()
          .toFloatArray();
    }
  }

  /// @param like tensors besides one `k` and one `v`
  private void assertRefusedLike(
      WeightsFile like, ParameterList parameters, ParameterNames names, String words)
      throws IOException {
    Path file =
        like.vector("model.k", DType.F32, 5)
            .vector("model.v", DType.F32, 6)
            .write(folder.resolve("like.safetensors"));
    try (Weights known = Weights.open(file)) {
      WeightsWriter writer =
          WeightsWriter.builder().setFile(folder.resolve("no")).optLike(known).build();
      assertThatThrownBy(() -> writer.write(parameters, names))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(words);
    }
  }

  @Test
  void partsOfATensorThatCannotBeOneTensorAreRefused() throws IOException {
    ParameterList parameters = parameters("p", "q");
    Path file =
        new WeightsFile()
            .tensor("p", DType.F32, TensorShape.of(1, 2), 1, 2)
            .vector("q", DType.BF16, 3, 4)
            .write(folder.resolve("two.safetensors"));
    load(file, parameters, ParameterNames.same());
    assertRefused(
        parameters,
        ParameterNames.builder().rule("p", "s").concat("q", 1, List.of("a", "b")).build(),
        "'q'",
        "the parameter has no axis 1");
    try (Weights known =
        Weights.open(
            new WeightsFile()
                .vector("t", DType.F32, 1, 2, 3, 4)
                .vector("u", DType.F32, 1, 2, 3, 4, 5, 6, 7, 8)
                .write(folder.resolve("like.safetensors")))) {
      WeightsWriter writer =
          WeightsWriter.builder().setFile(folder.resolve("no")).optLike(known).build();
      assertThatThrownBy(() ->
              writer.write(
                  parameters,
                  ParameterNames.builder()
                      .rule("p", "t", reshape(2, 2), part(0, 0, 2))
                      .rule("q", "t", part(0, 1, 2))
                      .build()))
          .isInstanceOf(MisuseException.class)
          .hasMessageEndingWith("the rule of 'p' reshapes the tensor in another way");
      assertThatThrownBy(() ->
              writer.write(
                  parameters,
                  ParameterNames.builder()
                      .rule("p", "u", part(0, 0, 2), reshape(2, 2), part(0, 0, 2))
                      .rule("q", "s")
                      .build()))
          .isInstanceOf(MisuseException.class)
          .hasMessageEndingWith("a reshape between two cuts cannot be undone");
    }
    ParameterList types = parameters("p", "q");
    Path other =
        new WeightsFile()
            .vector("p", DType.F32, 1, 2)
            .vector("q", DType.BF16, 3, 4)
            .write(folder.resolve("types.safetensors"));
    load(other, types, ParameterNames.same());
    assertRefused(
        types,
        ParameterNames.builder()
            .rule("p", "t", part(0, 0, 2))
            .rule("q", "t", part(0, 1, 2))
            .build(),
        "the parameter has type bfloat16, but parameter 'p' has type float32");
  }

  @Test
  void slicesOfATensorComeInAnyOrder() throws IOException {
    ParameterList parameters = parameters("p", "q");
    ParameterNames names =
        ParameterNames.builder()
            .rule("p", "t", slice(0, 2, 4))
            .rule("q", "t", slice(0, 0, 2))
            .build();
    Path file =
        new WeightsFile().vector("t", DType.F32, 1, 2, 3, 4).write(folder.resolve("t.safetensors"));
    load(file, parameters, names);
    Path copy = folder.resolve("copy.safetensors");
    WeightsWriter.builder().setFile(copy).build().write(parameters, names);
    assertSameFile(file, copy);
  }

  /// One of both parameters would be lost.
  @Test
  void twoNamesOfOneTensorAreRefused() throws IOException {
    ParameterList parameters = parameters("p", "q");
    Path file =
        new WeightsFile()
            .vector("p", DType.F32, 1, 2)
            .vector("q", DType.F32, 3, 4)
            .write(folder.resolve("two.safetensors"));
    load(file, parameters, ParameterNames.same());
    ParameterNames names =
        ParameterNames.builder().rule("p", "k").rule("q", "model.k").optPrefix("model.").build();
    try (Weights known =
        Weights.open(
            new WeightsFile()
                .vector("model.k", DType.F32, 5, 6)
                .write(folder.resolve("like.safetensors")))) {
      WeightsWriter writer =
          WeightsWriter.builder().setFile(folder.resolve("no")).optLike(known).build();
      assertThatThrownBy(() -> writer.write(parameters, names))
          .isInstanceOf(MisuseException.class)
          .hasMessage("two tensors of the rules count as 'model.k'");
    }
  }

  /// A table may map two parameters to one tensor; the parameters then share memory.
  @Test
  void twoParametersOfOneTensorInATable() throws IOException {
    Path file =
        new WeightsFile().vector("t", DType.F32, 1, 2).write(folder.resolve("one.safetensors"));
    ParameterNames names = ParameterNames.of(Map.of("p", "t", "q", "t"));
    ParameterList parameters = parameters("p", "q");
    load(file, parameters, names);
    Path copy = folder.resolve("copy.safetensors");
    WeightsWriter.builder().setFile(copy).build().write(parameters, names);
    assertSameFile(file, copy);
  }

  private void assertRefused(ParameterList parameters, ParameterNames names, String... words) {
    Path file = folder.resolve("refused.safetensors");
    assertThatThrownBy(() -> WeightsWriter.builder().setFile(file).build().write(parameters, names))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll(words);
    assertThat(file).doesNotExist();
  }

  private void load(Path file, ParameterList parameters, ParameterNames names) {
    try (Weights weights = Weights.open(file)) {
      weights.load(manager, parameters, names, LoadOptions.defaults());
    }
  }

  private static ParameterList parameters(int count) {
    return parameters(IntStream.range(0, count).mapToObj(i -> "p" + i).toArray(String[]::new));
  }

  private static ParameterList parameters(String... names) {
    ParameterList list = new ParameterList();
    for (String name : names) {
      list.add(name, Parameter.builder().setName(name).setType(Parameter.Type.WEIGHT).build());
    }
    return list;
  }
}
