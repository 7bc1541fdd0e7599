// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static dev.gantry.formats.TensorTransform.pad;
import static dev.gantry.formats.TensorTransform.part;
import static dev.gantry.formats.TensorTransform.permute;
import static dev.gantry.formats.TensorTransform.reshape;
import static dev.gantry.formats.TensorTransform.slice;
import static dev.gantry.formats.TensorTransform.transpose;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Rules by which tensors become parameters: names, transforms, types and what may be missing.
class ParameterRulesTest extends ParameterRulesFixture {
  /// Tensors of 12 KB, which are loaded in pieces if a slab holds 4 KiB.
  static Stream<Case> cases() {
    return Stream.of(
        new Case("as it is", new Shape(60, 50), array -> array),
        new Case("transposed", new Shape(60, 50), NDArray::transpose, transpose()),
        new Case(
            "permuted", new Shape(30, 5, 20), array -> array.transpose(2, 0, 1), permute(2, 0, 1)),
        new Case("reshaped", new Shape(60, 50), array -> array.reshape(30, 100), reshape(30, -1)),
        new Case("a third of the rows", new Shape(60, 50), rows("20:40"), part(0, 1, 3)),
        new Case("some rows", new Shape(60, 50), rows("7:59"), slice(0, 7, 59)),
        new Case("no rows", new Shape(60, 50), rows("7:7"), slice(0, 7, 7)),
        new Case("some columns", new Shape(60, 50), rows(":, 3:5"), slice(1, 3, 5)),
        new Case(
            "query of a fused, transposed projection",
            new Shape(20, 150),
            array -> array.transpose().get("50:100"),
            transpose(),
            part(0, 1, 3)),
        new Case(
            "rows of columns",
            new Shape(60, 50),
            array -> array.get(":, 10:20").get("30:60"),
            part(1, 1, 5),
            part(0, 1, 2)),
        new Case(
            "interleaved heads",
            new Shape(60, 50),
            array -> array.reshape(10, 2, 3, 50).get(":, 1").reshape(30, 50),
            reshape(10, 2, 3, 50),
            part(1, 1, 2),
            reshape(30, 50)),
        new Case(
            "rows, then transposed",
            new Shape(60, 50),
            array -> array.get("10:50").transpose(),
            slice(0, 10, 50),
            transpose()),
        new Case(
            "padded",
            new Shape(60, 50),
            array -> array.concat(array.getManager().zeros(new Shape(4, 50)), 0),
            pad(0, 64)),
        new Case(
            "transposed and padded",
            new Shape(60, 50),
            array -> array.transpose().concat(array.getManager().zeros(new Shape(50, 4)), 1),
            transpose(),
            pad(1, 64)));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void aNewParameter(Case each) throws IOException {
    ParameterList parameters = parameters("p");
    LoadReport report = load(each, DType.F32, parameters, DEFAULTS);
    assertIs(parameters.get("p"), each);
    assertThat(report.loaded()).isEqualTo(Map.of("p", "t"));
    assertThat(report.transformed().keySet().contains("p")).isEqualTo(!each.transforms().isEmpty());
  }

  @ParameterizedTest
  @MethodSource("cases")
  void anArrayThatIsThere(Case each) throws IOException {
    for (DType dtype : List.of(DType.F32, DType.BF16)) {
      for (LoadOptions options : List.of(DEFAULTS, IN_PIECES)) {
        ParameterList parameters = parameters("p");
        load(each, DType.F32, parameters, DEFAULTS);
        NDArray array = parameters.get("p").getArray();
        array.set(new float[Math.toIntExact(array.size())]);
        load(each, dtype, parameters, options);
        assertThat(parameters.get("p").getArray()).isSameAs(array);
        // Small integers are exact in BF16.
        assertIs(parameters.get("p"), each);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void aNewParameterOfTheStoredType(Case each) throws IOException {
    ParameterList parameters = parameters("p");
    load(each, DType.BF16, parameters, IN_PIECES);
    assertThat(parameters.get("p").getArray().getDataType()).isEqualTo(DataType.BFLOAT16);
    assertIs(parameters.get("p"), each);
  }

  private void assertIs(Parameter parameter, Case each) {
    try (NDManager scope = manager.newSubManager()) {
      NDArray stored = scope.create(floats(values(each.tensor())), each.tensor());
      NDArray expected = each.expected().apply(stored);
      NDArray array = parameter.getArray();
      assertThat(array.getShape()).isEqualTo(expected.getShape());
      NDArray actual = array.toType(DataType.FLOAT32, true);
      actual.attach(scope);
      assertThat(actual.toFloatArray()).isEqualTo(expected.toFloatArray());
    }
  }

  @Test
  void partsOfOneTensorAreReadOnceAndNotCopied() throws IOException {
    ParameterList parameters = parameters("q", "k", "v");
    ParameterNames names =
        ParameterNames.builder()
            .rule("q", "qkv", part(0, 0, 3))
            .rule("k", "qkv", part(0, 1, 3))
            .rule("v", "qkv", part(0, 2, 3))
            .build();
    long[] read = new long[1];
    LoadOptions options =
        LoadOptions.builder().optReport(report -> read[0] = report.bytes()).build();
    Path file = matrix("qkv", 6, 100);
    try (Weights weights = Weights.open(file)) {
      weights.load(manager, parameters, names, options);
    }
    assertThat(parameters.get("k").getArray().toFloatArray())
        .isEqualTo(floats(Arrays.copyOfRange(values(new Shape(6, 100)), 200, 400)));
    assertThat(read[0]).isLessThan(2 * 4096);
    assertThat(NoLeaks.held().slabs()).isPositive();
  }

  @Test
  void tensorsAreConcatenated() throws IOException {
    Path file =
        new WeightsFile()
            .vector("gate", DType.F32, 1, 2)
            .vector("up", DType.BF16, 3, 4, 5)
            .write(folder.resolve("two.safetensors"));
    ParameterList parameters = parameters("fused");
    ParameterNames names =
        ParameterNames.builder().concat("fused", 0, List.of("gate", "up")).build();
    LoadOptions cast = LoadOptions.builder().optCast(DataType.FLOAT32).build();
    LoadReport report = load(file, parameters, names, cast);
    assertThat(values(parameters, "fused")).containsExactly(1, 2, 3, 4, 5);
    assertThat(report.loaded()).isEqualTo(Map.of("fused", "gate, up"));
    assertThat(report.transformed()).isEqualTo(Map.of("fused", "concatenation along axis 0"));
    parameters.get("fused").getArray().muli(0);
    load(file, parameters, names, DEFAULTS);
    assertThat(values(parameters, "fused")).containsExactly(1, 2, 3, 4, 5);
  }

  @Test
  void transposedTensorsAreConcatenatedAsVectors() throws IOException {
    Path file =
        new WeightsFile()
            .tensor("gate", DType.F32, PyTorch.shape(new Shape(2, 2)), 1, 2, 3, 4)
            .tensor("up", DType.F32, PyTorch.shape(new Shape(2, 2)), 5, 6, 7, 8)
            .write(folder.resolve("vectors.safetensors"));
    ParameterList parameters = parameters("fused");
    ParameterNames names =
        ParameterNames.builder()
            .concat("fused", 0, List.of("gate", "up"), transpose(), reshape(4))
            .build();
    load(file, parameters, names, DEFAULTS);
    assertThat(values(parameters, "fused")).containsExactly(1, 3, 2, 4, 5, 7, 6, 8);
  }

  /// Each of them is padded where it lies.
  @Test
  void paddedTensorsAreConcatenated() throws IOException {
    Path file =
        new WeightsFile()
            .tensor("gate", DType.F32, PyTorch.shape(new Shape(1, 3)), 1, 2, 3)
            .tensor("up", DType.F32, PyTorch.shape(new Shape(1, 2)), 4, 5)
            .write(folder.resolve("padded.safetensors"));
    for (int axis = 0; axis < 2; axis++) {
      ParameterList parameters = parameters("fused");
      ParameterNames names =
          ParameterNames.builder().concat("fused", axis, List.of("gate", "up"), pad(1, 4)).build();
      for (int load = 0; load < 2; load++) {
        load(file, parameters, names, DEFAULTS);
        assertThat(values(parameters, "fused")).containsExactly(1, 2, 3, 0, 4, 5, 0, 0);
        // The second load writes into the array.
        parameters.get("fused").getArray().addi(9);
      }
      parameters.get("fused").close();
    }
  }

  @Test
  void paddingLeavesTheTensorsAloneThatAreLoadedBeforeIt() throws IOException {
    Path file =
        new WeightsFile()
            .tensor("up", DType.F32, PyTorch.shape(new Shape(1, 4)), 4, 5, 6, 7)
            .tensor("gate", DType.F32, PyTorch.shape(new Shape(1, 3)), 1, 2, 3)
            .write(folder.resolve("order.safetensors"));
    ParameterList parameters = parameters("fused");
    ParameterNames names =
        ParameterNames.builder().concat("fused", 0, List.of("gate", "up"), pad(1, 4)).build();
    load(file, parameters, names, DEFAULTS);
    assertThat(values(parameters, "fused")).containsExactly(1, 2, 3, 0, 4, 5, 6, 7);
    parameters.get("fused").close();
  }

  @Test
  void tensorsOfSeveralTypesOrRanksAreNotConcatenated() throws IOException {
    ParameterNames names =
        ParameterNames.builder().concat("fused", 0, List.of("gate", "up")).build();
    Path types =
        new WeightsFile()
            .vector("gate", DType.F32, 1, 2)
            .vector("up", DType.BF16, 3)
            .write(folder.resolve("types.safetensors"));
    LoadOptions stored = LoadOptions.builder().optAsStored(true).build();
    assertMisuse(
        () -> load(types, parameters("fused"), names, stored),
        "the tensors before it become float32");
    Path ranks =
        new WeightsFile()
            .vector("gate", DType.F32, 1, 2)
            .tensor("up", DType.F32, PyTorch.shape(new Shape(1, 1)), 4)
            .write(folder.resolve("ranks.safetensors"));
    assertRefused(
        ranks, parameters("fused"), names, "it cannot be concatenated along axis 0 with [2]");
  }

  @Test
  void tiedParametersShareTheirMemory() throws IOException {
    ParameterList parameters = parameters("embedding", "head");
    ParameterNames names =
        ParameterNames.builder().rule("embedding", "t").tie("head", "embedding").build();
    load(matrix("t", 2, 3), parameters, names, DEFAULTS);
    assertThat(values(parameters, "head")).containsExactly(0, 1, 2, 3, 4, 5);
    parameters.get("embedding").getArray().addi(1);
    assertThat(values(parameters, "head")).containsExactly(1, 2, 3, 4, 5, 6);
  }

  /// A reshape needs all rows of a tensor, whatever else takes some of them.
  @Test
  void aTensorComesWholeIfOneOfItsParametersNeedsAllRows() throws IOException {
    ParameterList parameters = parameters("turned", "shaped");
    ParameterNames names =
        ParameterNames.builder()
            .rule("turned", "t", part(0, 0, 2), transpose())
            .rule("shaped", "t", part(0, 1, 2), reshape(50, 30))
            .build();
    load(matrix("t", 60, 50), parameters, names, IN_PIECES);
    try (NDArray stored = manager.create(floats(values(new Shape(60, 50))), new Shape(60, 50))) {
      assertThat(values(parameters, "turned"))
          .isEqualTo(stored.get("0:30").transpose().toFloatArray());
      assertThat(values(parameters, "shaped")).isEqualTo(stored.get("30:60").toFloatArray());
    }
  }

  /// Otherwise a model would predict with parameters that were never loaded.
  @Test
  void completeNamesNeedATensorForEachParameterEvenIfALoadIsPartial() throws IOException {
    Path file = matrix("t", 1, 2);
    LoadOptions partial = LoadOptions.builder().optPartial(true).build();
    ParameterNames complete = ParameterNames.same().complete();
    assertMisuse(() -> load(file, parameters("t", "u"), complete, partial), "'u'");
    assertThat(load(file, parameters("t"), complete, partial).loaded()).containsOnlyKeys("t");
  }

  @Test
  void prefixesAliasesConstantsAndWhatIsIgnored() throws IOException {
    Path file =
        new WeightsFile()
            .vector("bert.LayerNorm.gamma", DType.F32, 1, 2)
            .vector("bert.other.count", DType.I64, 3)
            .write(folder.resolve("old.safetensors"));
    Parameter beta =
        Parameter.builder()
            .setName("norm_beta")
            .setType(Parameter.Type.BETA)
            .optShape(new Shape(2))
            .build();
    ParameterList parameters = parameters("norm_gamma");
    parameters.add("norm_beta", beta);
    ParameterNames names =
        ParameterNames.builder()
            .rule("norm_gamma", "LayerNorm.weight")
            .constant("norm_beta", 0.5f)
            .alias("{layer*}.gamma", "{layer}.weight")
            .alias("bert.LayerNorm.weight", "LayerNorm.weight")
            .ignore("{any*}.count")
            .build();
    LoadReport report = load(file, parameters, names, DEFAULTS);
    assertThat(values(parameters, "norm_gamma")).containsExactly(1, 2);
    assertThat(values(parameters, "norm_beta")).containsExactly(0.5f, 0.5f);
    assertThat(report.ignored()).containsExactly("bert.other.count");
    assertThat(report.loaded()).isEqualTo(Map.of("norm_gamma", "bert.LayerNorm.gamma"));
  }

  @Test
  void aRefusedTensorIsLeftOutByNoOption() throws IOException {
    ParameterNames.Builder names =
        ParameterNames.builder()
            .optPrefix("model.")
            .rule("p", "t")
            .refuse("head", "the block has no head")
            .ignore("{any*}");
    Path file = matrix("model.head", 1, 2);
    LoadOptions partial = LoadOptions.builder().optPartial(true).build();
    for (LoadOptions options : List.of(DEFAULTS, partial)) {
      assertThatThrownBy(() -> load(file, parameters("p"), names.build(), options))
          .isInstanceOf(MisuseException.class)
          .hasMessage("tensor 'model.head' is refused: the block has no head");
    }
    ParameterList parameters = parameters("head");
    load(
        file,
        parameters,
        ParameterNames.builder()
            .rule("head", "head")
            .optPrefix("model.")
            .refuse("head", "no")
            .build(),
        DEFAULTS);
    assertThat(values(parameters, "head")).containsExactly(0, 1);
  }

  @Test
  void aPrefixMayBeThereOrNot() throws IOException {
    ParameterNames names = ParameterNames.builder().rule("p", "t").optPrefix("model.").build();
    for (String name : List.of("t", "model.t")) {
      ParameterList parameters = parameters("p");
      load(matrix(name, 1, 2), parameters, names, DEFAULTS);
      assertThat(values(parameters, "p")).containsExactly(0, 1);
    }
  }

  @Test
  void theRestByOrderAndByShape() throws IOException {
    Path file =
        new WeightsFile()
            .vector("x", DType.F32, 1, 2)
            .vector("y", DType.F32, 3)
            .write(folder.resolve("rest.safetensors"));
    ParameterList twins = new ParameterList();
    twins.add("a", shaped("a", 2));
    twins.add("b", shaped("b", 2));
    assertRefused(
        file, twins, ParameterNames.builder().restByShape().build(), "[2]", "'a', 'b'", "'x'");
    assertRefused(
        file,
        parameters("a", "b", "c"),
        ParameterNames.builder().restByOrder().build(),
        "3 parameters",
        "2 tensors");
    assertRefused(
        file,
        parameters("a"),
        ParameterNames.builder().restByOrder().build(),
        "1 parameters",
        "2 tensors");
    assertRefused(
        file, twins, ParameterNames.builder().restByOrder().build(), "'b' [2]", "'y' [1]");
    ParameterList ordered = parameters("a", "b");
    load(file, ordered, ParameterNames.builder().restByOrder().build(), DEFAULTS);
    assertThat(values(ordered, "b")).containsExactly(3);
    // A tensor that no parameter needs has no place in the order.
    ParameterList last = parameters("a");
    load(file, last, ParameterNames.builder().ignore("x").restByOrder().build(), DEFAULTS);
    assertThat(values(last, "a")).containsExactly(3);
    ParameterList shaped = new ParameterList();
    shaped.add("a", shaped("a", 1));
    shaped.add("b", shaped("b", 2));
    load(file, shaped, ParameterNames.builder().restByShape().build(), DEFAULTS);
    assertThat(values(shaped, "a")).containsExactly(3);
    assertThat(values(shaped, "b")).containsExactly(1, 2);
  }

  @Test
  void typesByPattern() throws IOException {
    Path file =
        new WeightsFile()
            .vector("norm.weight", DType.BF16, 1)
            .vector("fc.weight", DType.BF16, 2)
            .write(folder.resolve("types.safetensors"));
    ParameterList parameters = parameters("norm.weight", "fc.weight");
    LoadOptions options =
        LoadOptions.builder()
            .optCast("norm.{any}", DataType.FLOAT32)
            .optCast(DataType.FLOAT16)
            .build();
    LoadReport report = load(file, parameters, ParameterNames.same(), options);
    assertThat(report.cast())
        .isEqualTo(Map.of("norm.weight", "BF16 to FLOAT32", "fc.weight", "BF16 to FLOAT16"));
    assertThat(parameters.get("fc.weight").getArray().getDataType()).isEqualTo(DataType.FLOAT16);
  }

  /// Two layers with GPT-2's names, as docs/weights.md shows them.
  @Test
  void aTransformersNames() throws IOException {
    ParameterNames names =
        ParameterNames.builder()
            .rule("tokens_embedding", "wte.weight")
            .rule("{i}Layer_norm_{kind}", "h.{i-1}.ln_1.{kind}")
            .rule("{i}Layer_query_weight", "h.{i-1}.attn.c_attn.weight", transpose(), part(0, 0, 3))
            .rule("{i}Layer_key_weight", "h.{i-1}.attn.c_attn.weight", transpose(), part(0, 1, 3))
            .rule("{i}Layer_value_weight", "h.{i-1}.attn.c_attn.weight", transpose(), part(0, 2, 3))
            .tie("head_weight", "tokens_embedding")
            .ignore("h.{i}.attn.bias")
            .optPrefix("transformer.")
            .build();
    WeightsFile file =
        new WeightsFile()
            .tensor(
                "transformer.wte.weight", DType.F32, PyTorch.shape(new Shape(2, 2)), 1, 2, 3, 4);
    for (int layer = 0; layer < 2; layer++) {
      String prefix = "transformer.h." + layer + ".";
      file.vector(prefix + "ln_1.bias", DType.F32, layer)
          .tensor(
              prefix + "attn.c_attn.weight",
              DType.F32,
              PyTorch.shape(new Shape(2, 6)),
              IntStream.range(0, 12).mapToDouble(i -> i).toArray())
          .vector(prefix + "attn.bias", DType.U8, 1);
    }
    ParameterList parameters =
        parameters(
            "tokens_embedding",
            "01Layer_norm_bias",
            "02Layer_norm_bias",
            "01Layer_query_weight",
            "01Layer_key_weight",
            "01Layer_value_weight",
            "02Layer_query_weight",
            "02Layer_key_weight",
            "02Layer_value_weight",
            "head_weight");
    LoadReport report =
        load(file.write(folder.resolve("gpt2.safetensors")), parameters, names, DEFAULTS);
    assertThat(report.loaded()).hasSize(10);
    assertThat(report.ignored()).hasSize(2);
    assertThat(values(parameters, "02Layer_norm_bias")).containsExactly(1);
    assertThat(values(parameters, "02Layer_key_weight")).containsExactly(2, 8, 3, 9);
    assertThat(values(parameters, "head_weight")).containsExactly(1, 2, 3, 4);
    assertThat(report.transformed())
        .containsEntry("02Layer_key_weight", "transpose, part 1 of 3 along axis 0");
  }

  private static float[] floats(double... values) {
    float[] floats = new float[values.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) values[i];
    }
    return floats;
  }
}
