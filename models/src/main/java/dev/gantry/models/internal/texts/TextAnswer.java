// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;

/// Turns what a model returns for a batch into a row of numbers for each text.
@FunctionalInterface
public interface TextAnswer {
  /// @param outputs as the block returns them
  /// @return FLOAT32 `[batch, numbers]`
  NDArray rows(NDList outputs, TokenBatch batch);
}
