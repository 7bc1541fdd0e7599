// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import java.lang.foreign.MemorySegment;

/// A slab of host memory.
public abstract sealed class CpuSlab extends Slab permits HostSlab, MappedSlab, PinnedSlab {
  CpuSlab(long address, long size, LiveResources.Kind kind, boolean kept) {
    super(address, size, kind, size, kept);
  }

  /// The memory as a segment. The segment does not keep the slab allocated, so its user must hold
  /// a share of the slab.
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
