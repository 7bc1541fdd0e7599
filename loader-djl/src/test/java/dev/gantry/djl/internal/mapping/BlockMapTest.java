// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import dev.gantry.core.TensorShape;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class BlockMapTest {
  private static Named named(String name, long... shape) {
    return new Named(name, Optional.of(TensorShape.of(shape)));
  }

  private static List<String> rules(List<Named> parameters, List<Named> tensors) {
    return RuleDraft.of(BlockMap.of(parameters, tensors)).lines();
  }

  @Test
  void layersAreFoldedWithTheirShift() {
    List<Named> parameters = new ArrayList<>(List.of(named("01Tokens_embedding", 9, 4)));
    List<Named> tensors = new ArrayList<>(List.of(named("wte.weight", 9, 4)));
    for (int layer = 0; layer < 12; layer++) {
      String block = "%02dLayer_".formatted(layer + 2);
      String tensor = "h." + layer + ".";
      parameters.add(named(block + "01query_weight", 4, 4));
      parameters.add(named(block + "02key_weight", 4, 4));
      parameters.add(named(block + "03up_weight", 8, 4));
      parameters.add(named(block + "03up_bias", 8));
      tensors.add(named(tensor + "attn.k_proj.weight", 4, 4));
      tensors.add(named(tensor + "attn.q_proj.weight", 4, 4));
      tensors.add(named(tensor + "mlp.c_fc.weight", 4, 8));
      tensors.add(named(tensor + "mlp.c_fc.bias", 8));
      tensors.add(named(tensor + "attn.masked_bias"));
    }
    assertThat(rules(parameters, tensors))
        .containsExactly(
            ".rule(\"01Tokens_embedding\", \"wte.weight\")",
            "// square, so its shape does not tell whether it is transposed, too",
            ".rule(\"{i}Layer_01query_weight\", \"h.{i-2}.attn.q_proj.weight\")",
            "// square, so its shape does not tell whether it is transposed, too",
            ".rule(\"{i}Layer_02key_weight\", \"h.{i-2}.attn.k_proj.weight\")",
            ".rule(\"{i}Layer_03up_weight\", \"h.{i-2}.mlp.c_fc.weight\","
                + " TensorTransform.transpose())",
            ".rule(\"{i}Layer_03up_bias\", \"h.{i-2}.mlp.c_fc.bias\")",
            ".ignore(\"h.{i}.attn.masked_bias\")");
  }

  @Test
  void aBlocksParametersHaveNoShapesWithoutThoseOfItsInputs() {
    Block block = new SequentialBlock().add(Linear.builder().setUnits(3).build());
    assertThat(Named.parameters(block, List.of()))
        .hasSize(2)
        .allMatch(each -> each.shape().isEmpty());
    assertThat(Named.parameters(block, List.of(new Shape(1, 4))))
        .first()
        .isEqualTo(named("01Linear_weight", 3, 4));
  }

  @Test
  void whatNamesDoNotTellIsNotGuessed() {
    List<Named> parameters =
        List.of(named("01Linear_weight", 4, 4), named("02Linear_weight", 4, 4));
    List<Named> tensors = List.of(named("key.weight", 4, 4), named("query.weight", 4, 4));
    BlockMap map = BlockMap.of(parameters, tensors);
    assertThat(map.matches()).isEmpty();
    assertThat(map.ambiguous()).hasSize(2);
    assertThat(map.missing()).isEmpty();
    assertThat(rules(parameters, tensors))
        .hasSize(2)
        .allMatch(line -> line.startsWith("// choose a tensor for 0"));
  }

  @Test
  void theWeightSaysWhichBiasItIs() {
    List<Named> parameters =
        List.of(
            named("01Linear_weight", 4, 8),
            named("01Linear_bias", 4),
            named("02Other_weight", 4, 16),
            named("02Other_bias", 4));
    List<Named> tensors =
        List.of(
            named("x.bias", 4),
            named("x.weight", 4, 16),
            named("y.bias", 4),
            named("y.weight", 4, 8));
    assertThat(rules(parameters, tensors))
        .containsExactly(
            ".rule(\"01Linear_weight\", \"y.weight\")",
            ".rule(\"01Linear_bias\", \"y.bias\")",
            ".rule(\"02Other_weight\", \"x.weight\")",
            ".rule(\"02Other_bias\", \"x.bias\")");
  }

  /// DJL numbers the layers of BERT twice.
  @Test
  void twoNumbersOfOneLayer() {
    List<Named> parameters =
        List.of(
            named("05transformer_0_01selfAttention_01keyProjection_weight", 4, 4),
            named("06transformer_1_01selfAttention_01keyProjection_weight", 4, 4));
    List<Named> tensors =
        List.of(named("layer.0.key.weight", 4, 4), named("layer.1.key.weight", 4, 4));
    assertThat(rules(parameters, tensors))
        .containsExactly(
            ".rule(\"{j}transformer_{i}_01selfAttention_01keyProjection_weight\","
                + " \"layer.{i}.key.weight\")");
  }

  @Test
  void numbersThatDoNotGoTogetherAreNotFolded() {
    List<Named> parameters =
        List.of(named("01Linear_weight", 4, 8), named("03Linear_weight", 2, 4));
    List<Named> tensors = List.of(named("fc1.weight", 4, 8), named("fc2.weight", 2, 4));
    assertThat(rules(parameters, tensors))
        .containsExactly(
            ".rule(\"01Linear_weight\", \"fc1.weight\")",
            ".rule(\"03Linear_weight\", \"fc2.weight\")");
    // A template would write 0 instead of 00.
    assertThat(
            rules(
                List.of(named("l0_weight", 4), named("l1_weight", 4)),
                List.of(named("l.00.weight", 4), named("l.01.weight", 4))))
        .containsExactly(
            ".rule(\"l0_weight\", \"l.00.weight\")", ".rule(\"l1_weight\", \"l.01.weight\")");
  }

  @Test
  void aParameterWithoutATensorMayBeTied() {
    assertThat(
            rules(
                List.of(named("tokens_weight", 9, 4), named("head_weight", 9, 4)),
                List.of(named("wte.weight", 9, 4))))
        .containsExactly(
            ".rule(\"tokens_weight\", \"wte.weight\")",
            "// no tensor for head_weight [9, 4]; if it shares one:"
                + " .tie(\"head_weight\", \"tokens_weight\")");
  }

  @Test
  void withoutShapesOnlyNamesThatAreAlikeMatch() {
    List<Named> parameters =
        List.of(
            new Named("query_weight", Optional.empty()), new Named("x_weight", Optional.empty()));
    List<Named> tensors = List.of(named("q_proj.weight", 4, 4), named("other.weight", 4, 4));
    assertThat(rules(parameters, tensors))
        .containsExactly(
            ".rule(\"query_weight\", \"q_proj.weight\")",
            "// choose a tensor for x_weight of unknown shape: other.weight");
  }

  @Test
  void namesThatARuleCannotHave() {
    assertThat(
            rules(
                List.of(named("a{_weight", 4), named("b\"_weight", 5)),
                List.of(named("a.weight", 4), named("b\"\n.weight", 5))))
        .containsExactly(
            "// a{_weight is a.weight; a rule can have no brace",
            ".rule(\"b\\\"_weight\", \"b\\\"\\012.weight\")");
  }

  @Test
  void familiesOfNames() {
    List<String> patterns =
        Family.of(
                List.of(named("a.0.x"), named("a.1.x"), named("a.0.y"), named("b1"), named("v2.c")))
            .stream()
            .map(Family::pattern)
            .toList();
    assertThat(patterns).containsExactly("a.{i}.x", "a.0.y", "b1", "v2.c");
    assertThat(Map.of("kind", NameWords.module("a.running_mean"))).containsValue("a");
  }
}
