// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Optional;

/// Receives loaded tensors and copies them to their destination.
@FunctionalInterface
public interface TensorTaker {
  /// Takes the values of one tensor, or of some of its rows. The array `rows` is closed afterwards.
  void take(String tensor, NDArray rows, long firstRow);

  /// The array into which the tensor's bytes may be read directly, instead of a call of [#take].
  /// It has the tensor's type and shape. Empty if there is no such array.
  default Optional<NDArray> place(StoredTensor tensor) {
    return Optional.empty();
  }
}
