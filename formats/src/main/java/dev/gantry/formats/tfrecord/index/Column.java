package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.HostSlab;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/// Numbers of one width, one after the other, little endian, outside of the heap. For one thread.
final class Column implements AutoCloseable {
  static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final long FIRST_BYTES = 64 << 10;

  private @Nullable HostSlab slab;
  private MemorySegment memory = MemorySegment.NULL;
  private long used;

  void addInt(int value) {
    makeRoom();
    memory.set(INT, used, value);
    used += Integer.BYTES;
  }

  void addLong(long value) {
    makeRoom();
    memory.set(LONG, used, value);
    used += Long.BYTES;
  }

  /// For the widest number: all sizes are multiples of it.
  private void makeRoom() {
    if (used + Long.BYTES <= memory.byteSize()) {
      return;
    }
    long grown = Math.max(FIRST_BYTES, Math.multiplyExact(memory.byteSize(), 2));
    HostMemory.require(grown);
    HostSlab larger = HostSlab.allocate(grown);
    MemorySegment target = larger.segment();
    MemorySegment.copy(memory, 0, target, 0, used);
    close();
    slab = larger;
    memory = target;
  }

  /// All numbers; until more are added.
  MemorySegment bytes() {
    return memory.asSlice(0, used);
  }

  /// Forgets the numbers' memory.
  @Override
  public void close() {
    if (slab != null) {
      slab.release();
      slab = null;
      memory = MemorySegment.NULL;
    }
  }
}
