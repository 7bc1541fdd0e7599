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

/// Checks memory of the caller before any of it changes. Each mistake has a message of one line.
public final class MemoryCheck {
  private MemoryCheck() {}

  /// @throws MisuseException if a piece of memory has another length than its extent, is read-only or closed, is not on
  ///     the device that it names, or reaches past its allocation; or if two parts overlap
  public static void ofTargets(List<ReadInto> parts) {
    parts.forEach(MemoryCheck::requireFits);
    requireApart(parts);
    requireAllocated(parts);
  }

  /// @throws MisuseException if memory is closed, is not on the device that it names, or reaches past its allocation
  static void ofSources(List<Memory> memories) {
    Extent nowhere = new Extent(Path.of("memory"), 0, 0);
    List<ReadInto> parts =
        memories.stream().map(memory -> new ReadInto("the write", nowhere, memory)).toList();
    parts.forEach(MemoryCheck::requireAlive);
    requireAllocated(parts);
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

  /// The address space of a piece of memory: a device, the host, or one array of the Java heap.
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

  /// Checks the parts on devices in the order of their addresses, so that the driver is asked only
  /// once for each allocation.
  private static void requireAllocated(List<ReadInto> parts) {
    Map<Device.Cuda, CudaPointers.Allocation> allocations = new HashMap<>();
    parts.stream()
        .filter(part -> part.memory() instanceof Memory.OnDevice && part.memory().length() > 0)
        .sorted(Comparator.comparingLong(part -> address(part.memory())))
        .forEach(part -> {
          Device.Cuda device = ((Memory.OnDevice) part.memory()).device();
          CudaPointers.Allocation allocation = allocations.get(device);
          if (allocation == null || address(part.memory()) >= allocation.end()) {
            allocation = allocation(device, part);
            allocations.put(device, allocation);
          }
          requireWithin(part, allocation);
        });
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

  /// Refuses memory that ends after its allocation. Memory of the kind `MAPPED` is exempt, since
  /// one address range may consist of several mappings.
  private static void requireWithin(ReadInto part, CudaPointers.Allocation allocation) {
    long end = address(part.memory()) + part.memory().length();
    if (end > allocation.end() && allocation.kind() != CudaPointers.Kind.MAPPED) {
      throw new MisuseException(
          "the memory for "
              + part.name()
              + " reaches "
              + (end - allocation.end())
              + " bytes past the end of its allocation");
    }
  }
}
