// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Bytes of a batch that the CPU writes, such as decoded records and labels.
///
/// @param slotOffset where the bytes go, from the slot's start
/// @param writers each writes its own part of the same memory; several may run at once. What they
///     leave unwritten is undefined
public record HostWrites(long slotOffset, long bytes, List<HostWriter> writers) {
  /// For a batch of which all bytes are read.
  public static final HostWrites NONE = new HostWrites(0, 0, List.of());

  public HostWrites {
    writers = List.copyOf(writers);
    if (slotOffset < 0 || bytes < 0) {
      throw new MisuseException("host writes of " + bytes + " bytes at slot offset " + slotOffset);
    }
  }

  /// Writes a part of the bytes.
  @FunctionalInterface
  public interface HostWriter {
    /// @param target the memory of all writers, [HostWrites#bytes] long; host memory, also for a slot
    ///     on a device. Valid only during the call
    void write(MemorySegment target);
  }
}
