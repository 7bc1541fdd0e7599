// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Optional;

/// Takes tensors to where they are wanted.
@FunctionalInterface
public interface TensorTaker {
  /// Takes the values of one tensor, or of some of its rows. The array `rows` is closed afterwards.
  void take(String tensor, NDArray rows, long firstRow);

  /// The array of the tensor's type and shape that its bytes may be read straight into, instead of a
  /// call of [#take]; empty if there is none.
  default Optional<NDArray> place(StoredTensor tensor) {
    return Optional.empty();
  }
}
