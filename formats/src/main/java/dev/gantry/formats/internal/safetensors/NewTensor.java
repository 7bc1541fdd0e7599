// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.spi.StoredTensor;

/// A tensor to be written: dense, C order, little endian. Immutable.
///
/// @param source the tensor's bytes, in a file or in any memory
public record NewTensor(String name, DType dtype, TensorShape shape, Source source) {
  /// @throws MisuseException if the source's length is not what dtype and shape need
  public NewTensor {
    StoredTensor.requireFilled(dtype, shape, source.length());
  }
}
