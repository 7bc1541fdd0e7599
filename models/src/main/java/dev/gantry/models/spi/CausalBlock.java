// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.spi;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import ai.djl.training.ParameterStore;

/// A language model in which each token sees only the tokens before it, so that the model can
/// continue a text.
public interface CausalBlock extends Block {
  /// Runs one forward pass over new tokens, without gradients.
  ///
  /// @param ids the ids of the tokens that follow those in the cache, `[batch, new tokens]`, INT64
  /// @param cache the keys and values of the earlier tokens; the pass adds those of the new tokens
  /// @return the scores of every token of the vocabulary to follow the last new token, `[batch,
  ///     vocabulary]`
  NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache);

  /// Returns the number of tokens in the vocabulary: ids are from 0 to this, exclusive.
  int vocabularySize();

  /// Returns the length of the longest text, in tokens.
  int maxPositions();
}
