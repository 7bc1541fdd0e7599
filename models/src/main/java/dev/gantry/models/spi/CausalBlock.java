// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.spi;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import ai.djl.training.ParameterStore;

/// A language model in which a token sees only those before it, so that it can continue a text.
public interface CausalBlock extends Block {
  /// Runs one pass over new tokens, without gradients.
  ///
  /// @param ids `[batch, new tokens]`, INT64: those that follow what the cache holds
  /// @param cache holds the new tokens, too, afterwards
  /// @return `[batch, vocabulary]`: the scores of what follows the last token
  NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache);

  /// How many tokens it knows: their ids are from 0 to this, exclusive.
  int vocabularySize();

  /// The longest text, in tokens.
  int maxPositions();
}
