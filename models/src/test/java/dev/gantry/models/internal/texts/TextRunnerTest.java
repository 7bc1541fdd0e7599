// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.pytorch.engine.PtNDArray;
import dev.gantry.models.HubModel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class TextRunnerTest {
  private static final Path FOLDER = Path.of("src/test/resources/texts/mean");

  /// Their states would otherwise take memory for all texts at once.
  @Test
  void theArraysOfAPassAreFreedBeforeTheNextPass() {
    HubModel hub = HubModel.of(FOLDER);
    TextTokenizer tokenizer =
        TextTokenizer.open(
            FOLDER,
            new TextTokenizer.Settings(
                16, false, Optional.of("[PAD]"), hub.inputs().getFirst().bound(), 2));
    List<NDArray> earlier = new ArrayList<>();
    TextRunner.Answer answer =
        (outputs, _) -> {
          assertThat(earlier).allMatch(states -> ((PtNDArray) states).isReleased());
          earlier.add(outputs.head());
          return outputs.head().mean(new int[] {1});
        };
    try (TextRunner runner = new TextRunner(hub.load(), tokenizer, answer, 1)) {
      float[][] rows =
          runner.rows(List.of("a", "the cat", "a"), text -> tokenizer.encode("", text), 0);
      assertThat(earlier).hasSize(3);
      assertThat(rows[0]).isEqualTo(rows[2]).isNotEqualTo(rows[1]);
    }
  }
}
