// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaPointers;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Checks memory of the caller before it is overwritten: each mistake has a message of one line, and nothing has
/// changed then. Also finds out which device memory to register with cuFile together.
final class MemoryCheck {
  private static final long PAGE_BYTES = 64 << 10;

  private final List<Memory> regions;

  private MemoryCheck(List<Memory> regions) {
    this.regions = regions;
  }

  /// @throws MisuseException if a piece of memory has another length than its extent, is read-only or closed, is not on
  ///     the device that it names, or reaches past its allocation; or if two parts overlap
  static MemoryCheck ofTargets(List<ReadInto> parts) {
    parts.forEach(MemoryCheck::requireFits);
    requireApart(parts);
    return new MemoryCheck(regions(parts));
  }

  /// @throws MisuseException if memory is closed, is not on the device that it names, or reaches past its allocation
  static void ofSources(List<Memory> memories) {
    Extent nowhere = new Extent(Path.of("memory"), 0, 0);
    List<ReadInto> parts =
        memories.stream().map(memory -> new ReadInto("the write", nowhere, memory)).toList();
    parts.forEach(MemoryCheck::requireAlive);
    var _ = regions(parts);
  }

  /// The memory to register for a part: that of the part and its neighbours in the same allocation.
  Memory region(int part) {
    return regions.get(part);
  }

  private static void requireFits(ReadInto part) {
    if (part.memory().length() != part.extent().length()) {
      throw new MisuseException(
          part.name()
              + " has "
              + part.extent().length()
              + " bytes, and the memory for it "
              + part.memory().length());
    }
    if (part.memory() instanceof Memory.OnHost(MemorySegment segment) && segment.isReadOnly()) {
      throw new MisuseException("the memory for " + part.name() + " is read-only");
    }
    requireAlive(part);
  }

  private static void requireAlive(ReadInto part) {
    if (part.memory() instanceof Memory.OnHost(MemorySegment segment)
        && !segment.scope().isAlive()) {
      throw new MisuseException("the memory for " + part.name() + " is closed");
    }
  }

  private static void requireApart(List<ReadInto> parts) {
    Map<Object, List<ReadInto>> spaces = new HashMap<>();
    for (ReadInto part : parts) {
      if (part.memory().length() > 0) {
        spaces.computeIfAbsent(space(part.memory()), _ -> new ArrayList<>()).add(part);
      }
    }
    for (List<ReadInto> space : spaces.values()) {
      space.sort(Comparator.comparingLong(part -> address(part.memory())));
      for (int i = 1; i < space.size(); i++) {
        ReadInto before = space.get(i - 1);
        if (address(before.memory()) + before.memory().length() > address(space.get(i).memory())) {
          throw new MisuseException(
              "the memory for " + before.name() + " overlaps that for " + space.get(i).name());
        }
      }
    }
  }

  /// The space in which an address counts: a device's memory, the host's, or one array of the Java heap.
  private static Object space(Memory memory) {
    return switch (memory) {
      case Memory.OnDevice device -> device.device();
      case Memory.OnHost(MemorySegment segment) -> segment.heapBase().orElse(Device.HOST);
    };
  }

  private static long address(Memory memory) {
    return switch (memory) {
      case Memory.OnDevice device -> device.address();
      case Memory.OnHost(MemorySegment segment) -> segment.address();
    };
  }

  private static List<Memory> regions(List<ReadInto> parts) {
    List<Memory> regions = new ArrayList<>(parts.stream().map(ReadInto::memory).toList());
    Map<Device.Cuda, List<Integer>> onDevices = new HashMap<>();
    for (int i = 0; i < parts.size(); i++) {
      if (parts.get(i).memory() instanceof Memory.OnDevice memory && memory.length() > 0) {
        onDevices.computeIfAbsent(memory.device(), _ -> new ArrayList<>()).add(i);
      }
    }
    onDevices.forEach((device, places) -> {
      places.sort(Comparator.comparingLong(i -> address(parts.get(i).memory())));
      joinNeighbours(device, parts, places, regions);
    });
    return regions;
  }

  /// Gives neighbours in one allocation the same region, since they may share a page of the registration.
  private static void joinNeighbours(
      Device.Cuda device, List<ReadInto> parts, List<Integer> sorted, List<Memory> regions) {
    CudaPointers.Allocation allocation = null;
    for (int first = 0; first < sorted.size(); ) {
      ReadInto part = parts.get(sorted.get(first));
      long from = address(part.memory());
      if (allocation == null || from >= allocation.end()) {
        allocation = allocation(device, part);
      }
      long end = end(part, allocation);
      int next = first + 1;
      while (next < sorted.size()) {
        ReadInto neighbour = parts.get(sorted.get(next));
        long start = address(neighbour.memory());
        if (start >= allocation.end() || start / PAGE_BYTES > end / PAGE_BYTES) {
          break;
        }
        end = end(neighbour, allocation);
        next++;
      }
      Memory region = new Memory.OnDevice(device, from, end - from);
      for (; first < next; first++) {
        regions.set(sorted.get(first), region);
      }
    }
  }

  private static CudaPointers.Allocation allocation(Device.Cuda device, ReadInto part) {
    CudaPointers.Allocation allocation =
        CudaContext.of(device)
            .allocation(address(part.memory()))
            .orElseThrow(
                reason -> new MisuseException("the memory for " + part.name() + ": " + reason));
    boolean ofOneDevice =
        switch (allocation.kind()) {
          case ORDINARY, POOLED, MAPPED -> true;
          case MANAGED, PINNED_HOST -> false;
        };
    if (ofOneDevice && allocation.device() != device.ordinal()) {
      throw new MisuseException(
          "the memory for "
              + part.name()
              + " is on cuda:"
              + allocation.device()
              + ", not on "
              + device);
    }
    return allocation;
  }

  /// The end of a part's memory, which must be within its allocation. Only virtual memory may go on in another mapping.
  private static long end(ReadInto part, CudaPointers.Allocation allocation) {
    long end = address(part.memory()) + part.memory().length();
    if (end > allocation.end() && allocation.kind() != CudaPointers.Kind.MAPPED) {
      throw new MisuseException(
          "the memory for "
              + part.name()
              + " reaches "
              + (end - allocation.end())
              + " bytes past the end of its allocation");
    }
    return end;
  }
}
