// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.translate.Translator;
import ai.djl.util.StringPair;
import dev.gantry.core.MisuseException;
import dev.gantry.models.HubModel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class TextRunnerTest {
  private static final Path FOLDER = Path.of("src/test/resources/texts/mean");

  /// Their states would otherwise take memory for all texts at once.
  @Test
  void theArraysOfAPassAreFreedBeforeTheNextPass() {
    HubModel hub = HubModel.of(FOLDER);
    TextTokenizer tokenizer = tokenizer(hub);
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

  @Test
  void theTokenizerOfATranslatorIsFreedWithItsModel() {
    HubModel hub = HubModel.of(FOLDER);
    TextTokenizer tokenizer = tokenizer(hub);
    Model model = hub.load();
    TextRunner runner = new TextRunner(model, tokenizer, (outputs, _) -> outputs.head(), 1);
    Translator<String, float[][]> _ = runner.translator(_ -> List.of(), 0, rows -> rows);
    assertThat(tokenizer.promptLength("a cat")).isPositive();
    model.close();
    assertThatThrownBy(() -> tokenizer.promptLength("a cat")).isInstanceOf(MisuseException.class);
  }

  /// The results of all texts at once could be more than the 2 GiB that DJL copies.
  @Test
  void theResultsOfALongListAreCopiedInParts() {
    HubModel hub = HubModel.of(FOLDER);
    TextTokenizer tokenizer = tokenizer(hub);
    List<String> texts = new ArrayList<>(Collections.nCopies(TextRunner.MOST_TEXTS + 1, "a"));
    texts.set(1, "the cat");
    Tokens shorter = tokenizer.encode("", "a");
    Tokens longer = tokenizer.encode("", "the cat");
    List<Integer> made = new ArrayList<>();
    List<Integer> computed = new ArrayList<>();
    TextRunner.Answer answer =
        new TextRunner.Answer() {
          @Override
          public NDList arrays(NDManager manager, TokenBatch batch) {
            made.add(batch.size());
            return new NDList();
          }

          @Override
          public NDArray rows(NDList outputs, NDList arrays) {
            computed.add(made.stream().mapToInt(size -> size).sum());
            return outputs.head().mean(new int[] {1});
          }
        };
    try (TextRunner runner = new TextRunner(hub.load(), tokenizer, answer, 8192)) {
      float[][] rows = runner.rows(texts, text -> text.equals("a") ? shorter : longer, 0);
      assertThat(computed).startsWith(TextRunner.MOST_TEXTS).endsWith(texts.size());
      assertThat(Arrays.asList(rows)).hasSize(texts.size()).doesNotContainNull();
      assertThat(rows[texts.size() - 1])
          .containsExactly(rows[texts.size() - 2], within(1e-5f))
          .isNotEqualTo(rows[1]);
    }
  }

  /// As the library cuts them, where the places that both texts share are odd in number.
  @Test
  void theSecondOfTwoEqualTextsKeepsOneTokenMore() {
    try (TextTokenizer tokenizer = tokenizer(8, 2)) {
      Tokens cut = tokenizer.encode("", new StringPair("a a a a a a", "a a a a a a"));
      assertThat(cut.types).containsExactly(0, 0, 0, 0, 1, 1, 1, 1);
    }
  }

  @Test
  void aModelWithoutTypesGetsNoneOfAPair() {
    try (TextTokenizer tokenizer = tokenizer(16, 0)) {
      assertThat(tokenizer.encode("", new StringPair("a", "the cat")).types).containsOnly(0);
    }
  }

  private static TextTokenizer tokenizer(HubModel hub) {
    return tokenizer(16, hub.inputs().getLast().bound());
  }

  private static TextTokenizer tokenizer(int longest, long types) {
    return TextTokenizer.open(
        FOLDER, new TextTokenizer.Settings(longest, false, Optional.of("[PAD]"), 1 << 20, types));
  }
}
