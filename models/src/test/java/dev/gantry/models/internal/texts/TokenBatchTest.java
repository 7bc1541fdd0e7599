// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import java.util.List;
import org.junit.jupiter.api.Test;

class TokenBatchTest {
  private static Tokens tokens(long... ids) {
    return new Tokens(ids, new long[ids.length]);
  }

  @Test
  void shorterTextsEndWithThePaddingToken() {
    TokenBatch batch = TokenBatch.of(List.of(tokens(5), tokens(6, 7, 8)), 0);
    try (NDManager manager = NDManager.newBaseManager()) {
      NDList inputs = batch.inputs(manager, 9);
      assertThat(inputs.get("input_ids").toLongArray()).containsExactly(5, 9, 9, 6, 7, 8);
      assertThat(inputs.get("attention_mask").toLongArray()).containsExactly(1, 0, 0, 1, 1, 1);
    }
  }

  /// The first text has nothing but a part of the prompt.
  @Test
  void theFirstTokenCountsWhereThePromptLeavesNone() {
    TokenBatch batch = TokenBatch.of(List.of(tokens(5, 6), tokens(5, 6, 7)), 2);
    List<Pooling> modes = List.of(Pooling.CLS, Pooling.MEAN);
    try (NDManager manager = NDManager.newBaseManager()) {
      assertThat(Pooling.arrays(manager, modes, batch).singletonOrThrow().toFloatArray())
          .containsExactly(1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1);
    }
  }

  @Test
  void aPromptMayBeLongerThanAText() {
    TokenBatch batch = TokenBatch.of(List.of(tokens(5, 6), tokens(5, 6, 7, 8)), 3);
    List<Pooling> modes = List.of(Pooling.CLS, Pooling.MAX);
    float none = Float.NEGATIVE_INFINITY;
    try (NDManager manager = NDManager.newBaseManager()) {
      NDList arrays = Pooling.arrays(manager, modes, batch);
      assertThat(arrays.getFirst().toFloatArray()).containsExactly(1, 0, 0, 0, 0, 0, 0, 1);
      assertThat(arrays.getLast().toFloatArray())
          .containsExactly(none, none, none, none, none, none, none, 0);
    }
  }

  @Test
  void aVectorOfZerosIsSimilarToNone() {
    float[] zeros = new float[2];
    assertThat(Similarity.COSINE.of(zeros, zeros)).isZero();
    assertThat(Similarity.COSINE.of(zeros, new float[] {1, 2})).isZero();
  }
}
