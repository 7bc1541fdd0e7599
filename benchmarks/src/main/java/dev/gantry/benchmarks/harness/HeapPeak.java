// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.List;

/// The most of the Java heap that was in use at once since the start, garbage included: the sum of
/// the heap pools' peaks, so rather too much than too little.
public final class HeapPeak {
  private static final List<MemoryPoolMXBean> POOLS =
      ManagementFactory.getMemoryPoolMXBeans().stream()
          .filter(pool -> pool.getType() == MemoryType.HEAP)
          .toList();

  private HeapPeak() {}

  /// Starts counting, with the garbage of what was before cleared away.
  public static HeapPeak start() {
    System.gc();
    POOLS.forEach(MemoryPoolMXBean::resetPeakUsage);
    return new HeapPeak();
  }

  /// In bytes.
  public long bytes() {
    return POOLS.stream().mapToLong(pool -> pool.getPeakUsage().getUsed()).sum();
  }
}
