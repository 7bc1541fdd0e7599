// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.PlanLimits;
import java.lang.foreign.MemorySegment;

/// What direct I/O on a file must be aligned to.
///
/// @param memoryBytes for the address
/// @param offsetBytes for offset and length
public record DirectAlignment(int memoryBytes, int offsetBytes) {
  /// As the kernel says; where it does not, a block, which every disk and file system accepts.
  public static DirectAlignment of(FileCalls.StatResult stat) {
    return new DirectAlignment(
        orBlock(stat.directMemoryAlignment()), orBlock(stat.directOffsetAlignment()));
  }

  private static int orBlock(int alignment) {
    return alignment > 0 ? alignment : PlanLimits.BLOCK_BYTES;
  }

  /// Whether all of this memory can go directly from or to this offset.
  public boolean fits(MemorySegment memory, long offset) {
    return offset % offsetBytes == 0
        && memory.byteSize() % offsetBytes == 0
        && memory.address() % memoryBytes == 0;
  }

  /// Whether what is left can still go directly: after a short count the next offset may be in
  /// mid-block, where direct I/O is refused.
  public boolean holdsAfter(long count) {
    return count % offsetBytes == 0 && count % memoryBytes == 0;
  }
}
