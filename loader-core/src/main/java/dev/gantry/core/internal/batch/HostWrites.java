// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Bytes of a batch that the CPU writes, such as decoded records and labels.
///
/// @param slotOffset where the bytes go, in bytes from the slot's start
/// @param writers the writers, each of which writes its own part of the bytes; several may run at
///     once. Bytes that no writer writes are undefined
public record HostWrites(long slotOffset, long bytes, List<HostWriter> writers) {
  /// No host writes, for a batch whose bytes are all read.
  public static final HostWrites NONE = new HostWrites(0, 0, List.of());

  public HostWrites {
    writers = List.copyOf(writers);
    if (slotOffset < 0 || bytes < 0) {
      throw new MisuseException("host writes of " + bytes + " bytes at slot offset " + slotOffset);
    }
  }

  /// Writes a part of the bytes of [HostWrites].
  @FunctionalInterface
  public interface HostWriter {
    /// @param target the memory of all writers, [HostWrites#bytes] long. The memory is host memory
    ///     even if the slot is on a device, and is valid only during the call
    void write(MemorySegment target);
  }
}
