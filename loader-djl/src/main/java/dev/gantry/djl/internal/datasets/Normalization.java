// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;

/// `value · scale + shift` as FLOAT32, computed where the values are.
public record Normalization(float scale, float shift) {
  /// A new array, which belongs to the manager of `values`; `values` is closed.
  NDArray apply(NDArray values) {
    NDArray result = values.toType(DataType.FLOAT32, true);
    result.setName(values.getName());
    values.close();
    return result.muli(scale).addi(shift);
  }
}
