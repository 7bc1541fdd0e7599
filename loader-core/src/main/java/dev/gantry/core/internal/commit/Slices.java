// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaPointers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Collects the sources of one write in order, and joins sources that are adjacent in memory or in a file. Not
/// thread-safe.
final class Slices {
  private final List<Source> slices = new ArrayList<>();

  /// The end address of the allocation that holds the last slice; 0 if the driver was not asked yet.
  private long allocationEnd;

  void add(Source next) {
    Source joined = slices.isEmpty() ? null : joined(slices.getLast(), next);
    if (joined == null) {
      allocationEnd = 0;
      slices.add(next);
    } else {
      slices.set(slices.size() - 1, joined);
    }
  }

  List<Source> all() {
    return slices;
  }

  /// Returns one source for both if `next` begins where `last` ends; otherwise null.
  private @Nullable Source joined(Source last, Source next) {
    return switch (last) {
      // Memory of an arena is not joined, because the joined source is a bare address, which would
      // not notice when the arena is closed.
      case Memory.OnHost(MemorySegment first)
          when next instanceof Memory.OnHost(MemorySegment second)
              && isAddress(first)
              && isAddress(second)
              && first.address() + first.byteSize() == second.address() ->
          new Memory.OnHost(
              MemorySegment.ofAddress(first.address())
                  .reinterpret(first.byteSize() + second.byteSize()));
      case Memory.OnDevice(Device.Cuda device, long address, long length)
          when next instanceof Memory.OnDevice second
              && second.device().equals(device)
              && address + length == second.address()
              && second.address() + second.length() <= allocationEnd(device, address) ->
          new Memory.OnDevice(device, address, length + second.length());
      case Source.FilePart(Extent extent)
          when next instanceof Source.FilePart(Extent second)
              && second.file().equals(extent.file())
              && extent.end() == second.offset() ->
          new Source.FilePart(
              new Extent(extent.file(), extent.offset(), extent.length() + second.length()));
      case Memory.OnHost _, Memory.OnDevice _, Source.FilePart _ -> null;
    };
  }

  private static boolean isAddress(MemorySegment segment) {
    return segment.isNative() && segment.scope().equals(Arena.global().scope());
  }

  /// Returns the end address of an allocation. Adjacent memory may belong to two allocations, and the driver
  /// refuses a copy across both.
  private long allocationEnd(Device.Cuda device, long address) {
    if (allocationEnd == 0) {
      allocationEnd =
          CudaContext.of(device)
              .allocation(address)
              .toOptional()
              .map(CudaPointers.Allocation::end)
              .orElse(0L);
    }
    return allocationEnd;
  }
}
