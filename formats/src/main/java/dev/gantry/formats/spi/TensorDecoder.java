// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import java.lang.foreign.MemorySegment;

/// Reads a tensor whose bytes do not lie in its file as memory holds them. Thread-safe.
@FunctionalInterface
public interface TensorDecoder {
  /// Reads the tensor's extent and writes the elements: densely, in C order, little endian. Buffers must be bounded,
  /// whatever the tensor's size.
  ///
  /// @param file the tensor's file, which the caller closes
  /// @param target native memory of the tensor's size
  /// @throws dev.gantry.core.MalformedFileException if the bytes break a rule of the format
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  void decode(FileBytes file, StoredTensor tensor, MemorySegment target);
}
