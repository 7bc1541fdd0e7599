// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;

/// Turns what a model returns for a batch into a row of numbers for each text.
@FunctionalInterface
public interface TextAnswer {
  /// The arrays that the rows need beside the outputs. They are made before the pass: a copy to a device waits for all
  /// that the device has queued.
  default NDList arrays(NDManager manager, TokenBatch batch) {
    return new NDList();
  }

  /// @param outputs as the block returns them
  /// @param arrays of [#arrays]
  /// @return FLOAT32 `[batch, numbers]`
  NDArray rows(NDList outputs, NDList arrays);
}
