// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import java.io.IOException;
import java.lang.foreign.MemorySegment;

/// Decodes one sample's value, such as a JPEG, into a field of a fixed dtype and shape, while batches are
/// read ahead. Several threads call it at once.
@FunctionalInterface
public interface FieldDecoder {
  /// Both segments are native memory, which the decoder may use only until it returns.
  ///
  /// @param encoded the whole value as its file has it
  /// @param target the memory of one sample's value, in C order, little endian; the decoder fills all of
  ///     it, and may find anything there
  /// @param seed the seed for random changes such as crops: it differs among samples and epochs, and is
  ///     the same whenever a sample is read again in the same epoch, on any rank
  /// @throws IOException if the value is damaged, or none that this decodes; the caller adds the file and
  ///     the offset to its message
  void decode(MemorySegment encoded, MemorySegment target, long seed) throws IOException;
}
