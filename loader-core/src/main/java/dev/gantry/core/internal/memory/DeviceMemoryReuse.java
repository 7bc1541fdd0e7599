// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.CudaDriver;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Device memory that slabs take one after the other, for loads in parts: the driver clears freed
/// memory, which takes bandwidth from the next part, and freeing waits for all work of the device.
/// Thread-safe.
public final class DeviceMemoryReuse implements AutoCloseable {
  /// Memory of the driver's.
  private record Idle(CudaContext context, long allocated, long capacity) {}

  private final long capacity;
  private final Deque<Idle> idle = new ArrayDeque<>();
  private boolean closed;

  /// @param capacity the least that is allocated, so that slabs of about this size replace each other
  public DeviceMemoryReuse(long capacity) {
    this.capacity = capacity;
  }

  /// A slab in memory that an earlier one had, if there is any that is large enough.
  ///
  /// @throws dev.gantry.core.TransferException if the device has no room
  public DeviceSlab allocate(CudaContext context, long size) {
    Idle found = take(context, size);
    if (found == null) {
      return DeviceSlab.allocate(context, size, Math.max(size, capacity), this);
    }
    // Kernels that read the slab before may still be queued there.
    try (var _ = context.enter()) {
      context.driver().synchronize(CudaDriver.Stream.DEFAULT);
    }
    return DeviceSlab.over(context, found.allocated(), size, found.capacity(), this);
  }

  private synchronized @Nullable Idle take(CudaContext context, long size) {
    for (Idle each : idle) {
      if (each.context().equals(context) && each.capacity() >= size) {
        idle.remove(each);
        return each;
      }
    }
    return null;
  }

  void giveBack(CudaContext context, long allocated, long memory) {
    synchronized (this) {
      if (!closed) {
        idle.add(new Idle(context, allocated, memory));
        return;
      }
    }
    free(context, allocated);
  }

  static void free(CudaContext context, long allocated) {
    try (var _ = context.enter()) {
      context.driver().freeDevice(allocated);
    }
  }

  /// Frees what is idle. What slabs still have goes with them.
  @Override
  public void close() {
    List<Idle> all;
    synchronized (this) {
      closed = true;
      all = List.copyOf(idle);
      idle.clear();
    }
    Cleanup.runAll(
        all.stream().<Runnable>map(each -> () -> free(each.context(), each.allocated())).toList());
  }
}
