// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A result is read as it was written.
class ResultJsonTest {
  @Test
  void readsWhatItWrote() {
    assertThat(ResultJson.read(ResultJson.text(Results.full()))).isEqualTo(Results.full());
  }

  @Test
  void pointsAreComparedWithTheCeilingOfTheirOwnTurns() {
    Result result = Results.full();
    Point cold =
        result.points(Group.LOAD).stream()
            .filter(point -> point.heat() == Heat.COLD)
            .findFirst()
            .orElseThrow();
    assertThat(result.ceiling(cold).orElseThrow().median()).isEqualTo(4);
    assertThat(result.ratio(cold).orElseThrow()).isEqualTo(3.95 / 4);
    assertThat(result.ratio(result.points(Group.GRID).getFirst())).isEmpty();
  }

  /// Changes that a lenient reader would take for null or 0.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "\"cores\": 16|\"kerne\": 16",
        "\"date\": \"2026-01-02T03:04:05Z\"|\"date\": \"now\"",
        "\"heat\": \"hot\"|\"heat\": \"warm\"",
        "\"GPU A\"|null",
        "\"group\": \"GRID\"|\"group\": 3",
        "\"schema\": 1|\"schema\": \"1\"",
        "\"bytes\": 8388608|\"bytes\": {}"
      })
  void everyFieldMustBeThereAndOfItsKind(String change) {
    String[] sides = change.split("\\|", 2);
    String text = ResultJson.text(Results.full());
    assertThat(text).contains(sides[0]);
    assertThatThrownBy(() -> ResultJson.read(text.replace(sides[0], sides[1])))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "no JSON",
        "[]",
        "{}",
        "{\"schema\": 1}",
        "{\"schema\": 2, \"run\": {}}",
        "{\"schema\": \"1\"}",
        "{\"schema\": 1, \"run\": {\"version\": null}}"
      })
  void whatIsNoBenchIsMisuse(String text) {
    assertThatThrownBy(() -> ResultJson.read(text)).isInstanceOf(IllegalArgumentException.class);
  }
}
