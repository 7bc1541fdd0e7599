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

import ai.djl.nn.ParameterList;
import dev.gantry.core.DType;
import dev.gantry.formats.TensorTransform;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Rules that contradict each other, the weights or the block: the error names the rule.
class ParameterRuleErrorsTest extends ParameterRulesFixture {
  @Test
  void twoRulesForOneParameter() throws IOException {
    ParameterNames names = ParameterNames.builder().rule("p", "t").rule("{any}", "t").build();
    assertRefused(
        matrix("t", 1, 2),
        parameters("p"),
        names,
        "'p'",
        "two rules",
        "'p' -> 't'",
        "'{any}' -> 't'");
  }

  @Test
  void twoRulesForOneTensor() throws IOException {
    ParameterNames names = ParameterNames.builder().rule("p", "t").rule("q", "t").build();
    assertRefused(
        matrix("t", 1, 2), parameters("p", "q"), names, "'t'", "two rules", "'p'", "'q'", "tie(");
  }

  @Test
  void twoTensorsOfOneAlias() throws IOException {
    Path file =
        new WeightsFile()
            .vector("old.gamma", DType.F32, 1)
            .vector("older.gamma", DType.F32, 1)
            .write(folder.resolve("aliases.safetensors"));
    ParameterNames names =
        ParameterNames.builder().rule("p", "weight").alias("{any}.gamma", "weight").build();
    assertRefused(
        file, parameters("p"), names, "'old.gamma'", "'older.gamma'", "both count as 'weight'");
  }

  @Test
  void aRuleForNoParameter() throws IOException {
    ParameterNames names = ParameterNames.builder().rule("p", "t").rule("layer{i}", "x{i}").build();
    assertRefused(
        matrix("t", 1, 2), parameters("p"), names, "'layer{i}' -> 'x{i}'", "no parameter", "'p'");
    ParameterNames optional =
        ParameterNames.builder().rule("p", "t").optRule("layer{i}", "x{i}").build();
    load(matrix("t", 1, 2), parameters("p"), optional, DEFAULTS);
  }

  @ParameterizedTest
  @ValueSource(strings = {"01Linear_{k}", "{name}_{k*}"})
  void aRuleWhoseNumberMeetsText(String parameter) throws IOException {
    ParameterNames names = ParameterNames.builder().rule(parameter, "fc1.{k}").build();
    assertRefused(
        matrix("t", 1, 2),
        parameters("01Linear_bias"),
        names,
        "matches no parameter; the parameters are '01Linear_bias'",
        "; {k} stands for a whole number; {name} is text without dots, {name*} text with dots");
  }

  @ParameterizedTest
  @ValueSource(strings = {"02Linear_{k}", "01Linear_{kind}x", "01Linear_bia"})
  void aRuleThatTextWouldNotFitIsToldNothingOfNumbers(String parameter) throws IOException {
    ParameterNames names = ParameterNames.builder().rule(parameter, "t").build();
    assertThatThrownBy(() -> load(matrix("t", 1, 2), parameters("01Linear_bias"), names, DEFAULTS))
        .hasMessageEndingWith("matches no parameter; the parameters are '01Linear_bias'");
  }

  @Test
  void aParameterWithoutARuleAndATensorWithoutOne() throws IOException {
    Path file =
        new WeightsFile()
            .vector("t", DType.F32, 1)
            .vector("layer.wieght", DType.F32, 1)
            .write(folder.resolve("odd.safetensors"));
    ParameterNames names =
        ParameterNames.builder().rule("p", "t").rule("q", "layer.weight").build();
    assertRefused(
        file,
        parameters("p", "q", "r"),
        names,
        "'q', 'r'",
        "similar names are 'layer.wieght'",
        "tensor 'layer.wieght'",
        "optPartial(true)");
    LoadOptions partial = LoadOptions.builder().optPartial(true).build();
    LoadReport report = load(file, parameters("p", "q", "r"), names, partial);
    assertThat(report.missing()).containsExactly("q", "r");
    assertThat(report.unexpected()).containsExactly("layer.wieght");
  }

  @Test
  void transformsThatDoNotFit() throws IOException {
    Path file = matrix("t", 4, 6);
    for (TensorTransform transform :
        List.of(
            permute(0, 2, 1),
            reshape(5, -1),
            reshape(5, 5),
            reshape(1L << 40, 1L << 40),
            reshape(0, 24),
            reshape(0, -1),
            part(0, 0, 3),
            part(2, 0, 2),
            slice(1, 3, 7),
            pad(0, 3))) {
      assertRefused(
          file,
          parameters("p"),
          ParameterNames.builder().rule("p", "t", transform).build(),
          "'t' (F32 [4, 6])",
          "'p' -> 't'",
          transform.toString(),
          "cannot be applied to [4, 6]");
    }
    ParameterList shaped = new ParameterList();
    shaped.add("p", shaped("p", 7));
    assertRefused(
        file,
        shaped,
        ParameterNames.builder().rule("p", "t", reshape(-1)).build(),
        "the parameter has shape [7]",
        "this gives [24]; optSkipMismatched(true) leaves it as it is");
  }

  @Test
  void rulesThatCannotBe() {
    assertMisuse(() -> permute(0, 0), "permute", "[0, 0]");
    assertMisuse(() -> part(0, 3, 3), "index of part must be 0 to 2 (was 3)");
    assertMisuse(() -> slice(0, 3, 2), "to of slice");
    assertMisuse(() -> reshape(-1, -1), "reshape");
    assertMisuse(() -> ParameterNames.builder().rule("p", "{x}"), "'{x}'", "does not capture");
    assertMisuse(
        () -> ParameterNames.builder().rule("p", "t", pad(0, 3), transpose()),
        "pad must be the last");
    assertMisuse(() -> ParameterNames.builder().concat("p", 0, List.of()), "1 to");
    assertRefused(
        matrixUnchecked(), parameters("p"), ParameterNames.builder().tie("p", "x").build(), "'x'");
  }

  private Path matrixUnchecked() {
    try {
      return matrix("t", 1, 1);
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
