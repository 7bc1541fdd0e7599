// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import java.lang.foreign.MemorySegment;

/// Host memory.
public abstract sealed class CpuSlab extends Slab permits HostSlab, MappedSlab, PinnedSlab {
  CpuSlab(long address, long size, LiveResources.Kind kind, boolean kept) {
    super(address, size, kind, size, kept);
  }

  /// The memory as a segment, which does not keep the slab alive: hold a share while you use it.
  public final MemorySegment segment() {
    return segment(address(), size());
  }

  static MemorySegment segment(long address, long size) {
    return MemorySegment.ofAddress(address).reinterpret(size);
  }

  @Override
  public final Device device() {
    return Device.HOST;
  }
}
