// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.HostSlab;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/// A growing list of numbers of one width, little endian, in native memory. Not thread-safe.
public final class Column implements AutoCloseable {
  public static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  public static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final long FIRST_BYTES = 64 << 10;

  private @Nullable HostSlab slab;
  private MemorySegment memory = MemorySegment.NULL;
  private long used;

  public void addInt(int value) {
    room(Integer.BYTES).set(INT, 0, value);
  }

  public void addLong(long value) {
    room(Long.BYTES).set(LONG, 0, value);
  }

  /// Appends memory for more numbers and returns it, so that the caller fills it; valid until more
  /// numbers are added.
  MemorySegment room(long bytes) {
    long needed = used + bytes;
    if (needed > memory.byteSize()) {
      long grown =
          Math.max(FIRST_BYTES, Math.max(needed, Math.multiplyExact(memory.byteSize(), 2)));
      HostSlab larger = Admission.slab(grown);
      MemorySegment target = larger.segment();
      MemorySegment.copy(memory, 0, target, 0, used);
      close();
      slab = larger;
      memory = target;
    }
    MemorySegment room = memory.asSlice(used, bytes);
    used = needed;
    return room;
  }

  /// Returns the bytes of all numbers; valid until more are added.
  public MemorySegment bytes() {
    return memory.asSlice(0, used);
  }

  /// Gives up the numbers' memory.
  @Override
  public void close() {
    if (slab != null) {
      slab.release();
      slab = null;
      memory = MemorySegment.NULL;
    }
  }
}
