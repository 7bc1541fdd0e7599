// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import java.util.List;

/// Turns quantised values into floating-point ones, on their device. Holds the scales meanwhile.
final class Conversion implements AutoCloseable {
  static Conversion begin(
      GantrySession session,
      NDManager manager,
      Device device,
      LoadSettings settings,
      Scales scales,
      List<StoredTensor> tensors) {
    return new Conversion();
  }

  NDArray convert(StoredTensor rows, long firstRow, NDArray bytes, DataType type) {
    throw new MisuseException("not yet");
  }

  @Override
  public void close() {}
}
