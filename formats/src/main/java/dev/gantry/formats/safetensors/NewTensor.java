package dev.gantry.formats.safetensors;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.core.Source;

/// A tensor to be written: dense, C order, little endian. Immutable.
///
/// @param source its bytes, wherever they are now
public record NewTensor(String name, DType dtype, Shape shape, Source source) {
  /// @throws MisuseException if the source's length is not what dtype and shape need
  public NewTensor {
    TensorInfo.checkLength(dtype, shape, source.length());
  }
}
