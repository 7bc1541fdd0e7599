// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.spi.StoredTensor;

/// A tensor of some weights, as their files describe it.
///
/// @param bytes its size in memory
public record TensorInfo(String name, DType dtype, TensorShape shape, long bytes) {
  static TensorInfo of(StoredTensor tensor) {
    return new TensorInfo(tensor.name(), tensor.dtype(), tensor.shape(), tensor.bytes());
  }
}
