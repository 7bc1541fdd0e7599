// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.names;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class NamePatternTest {
  @ParameterizedTest
  @CsvSource({
    "a.weight, a.weight, true",
    "a.weight, aXweight, false",
    "a.weight, a.weight2, false",
    "layer.{i}.weight, layer.12.weight, true",
    "layer.{i}.weight, layer.x.weight, false",
    "layer.{i}.weight, layer..weight, false",
    "{kind}.weight, a.weight, true",
    "{kind}.weight, a.b.weight, false",
    "{kind*}.weight, a.b.weight, true",
    "{a}.{a}, x.x, true",
    "{a}.{a}, x.y, false",
    "{i}Layer_{kind}, 03Layer_weight, true",
    "$a(b)[c]^.+, $a(b)[c]^.+, true",
  })
  void matches(String pattern, String name, boolean expected) {
    assertThat(new NamePattern(pattern).matches(name)).isEqualTo(expected);
  }

  @Test
  void numbersLoseLeadingZerosAndTextKeepsThem() {
    assertThat(new NamePattern("{i}Layer_{kind}").match("03Layer_00"))
        .contains(Map.of("i", "3", "kind", "00"));
  }

  @ParameterizedTest
  @CsvSource({
    "layer.{i}.{kind}, layer.3.bias",
    "layer.{i-1}, layer.2",
    "layer.{i+10}, layer.13",
    "plain, plain",
    "{kind}{kind}, biasbias",
  })
  void fills(String template, String expected) {
    assertThat(NamePattern.fill(template, Map.of("i", "3", "kind", "bias"))).isEqualTo(expected);
  }

  @Test
  void textMayHaveSignsOfRegexes() {
    assertThat(NamePattern.fill("{kind}.weight", Map.of("kind", "$1\\a")))
        .isEqualTo("$1\\a.weight");
  }

  @Test
  void aNumberMayBeLargerThanALong() {
    NamePattern pattern = new NamePattern("{i}");
    String nines = "9".repeat(30);
    assertThat(NamePattern.fill("{i+1}", pattern.match(nines).orElseThrow()))
        .isEqualTo("1" + "0".repeat(30));
  }

  @ParameterizedTest
  @ValueSource(strings = {"{", "a}", "{}", "{a-b}", "{1a}", "{{i}}", "{i+1}", "{a**}"})
  void bracesThatAreNoCapture(String pattern) {
    assertThatThrownBy(() -> new NamePattern(pattern))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("'" + pattern + "'");
  }

  @ParameterizedTest
  @ValueSource(strings = {"{j}", "{kind+1}", "{", "x{other}"})
  void templatesThatAPatternCannotFill(String template) {
    NamePattern pattern = new NamePattern("{i}.{kind}");
    assertThatThrownBy(() -> pattern.requireFills(template))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("'" + template + "'");
  }
}
