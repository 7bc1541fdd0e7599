// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import dev.gantry.djl.internal.ndarray.ArrayMemory;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.weights.TensorTaker;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Copies restored tensors into existing arrays.
///
/// @param targets the arrays that get a tensor's values, by the tensor's name; tensors without an
///     entry are left out
record ArrayTargets(Map<String, ? extends Collection<NDArray>> targets) implements TensorTaker {
  private Collection<NDArray> of(String tensor) {
    Collection<NDArray> known = targets.get(tensor);
    return known == null ? List.of() : known;
  }

  @Override
  public void take(String tensor, NDArray rows, long firstRow) {
    of(tensor).forEach(target -> TorchArrays.copy(rows, target, firstRow));
  }

  @Override
  public Optional<NDArray> place(StoredTensor tensor) {
    Collection<NDArray> all = of(tensor.name());
    return all.stream()
        .filter(
            array -> all.size() == 1 && ArrayMemory.holds(array, tensor.dtype(), tensor.shape()))
        .findFirst();
  }
}
