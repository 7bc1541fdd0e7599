// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Copies the bytes of files for one snapshot: [#sizes] returns how much memory the copies need,
/// and [#run] makes them.
///
/// The bytes that come from one device go to one slab. In the slab, the parts of a file are
/// consecutive, at the same offset modulo the block size as in the file, so that whole blocks can
/// be written without another copy. Copies from devices are queued first, and run while the CPU
/// copies host memory. May be used once, by one thread.
final class SnapshotCopy {
  /// The most bytes that one thread copies at a time.
  private static final long STEP_BYTES = 16 << 20;

  private static final int MAX_THREADS = 8;

  private record HostCopy(MemorySegment from, MemorySegment to) {}

  private final List<NewFile> files;

  /// The offset of each part in the slab of the part's device, by file and part; -1 for a part that is not in
  /// memory or has no bytes.
  private final List<long[]> offsets;

  private final Map<Device, Long> sizes = new HashMap<>();
  private final Map<Device.Cuda, CopyQueue> queues = new HashMap<>();
  private final List<HostCopy> hostCopies = new ArrayList<>();
  private boolean atRest = true;

  SnapshotCopy(List<NewFile> files) {
    this.files = files;
    offsets = files.stream().map(this::place).toList();
  }

  private long[] place(NewFile file) {
    long[] places = new long[file.parts().size()];
    Device before = null;
    long fileOffset = 0;
    for (int i = 0; i < places.length; i++) {
      Source part = file.parts().get(i);
      Device origin = origin(part);
      if (part.length() == 0) {
        places[i] = -1;
      } else if (origin == null) {
        places[i] = -1;
        before = null;
      } else {
        long end = sizes.getOrDefault(origin, 0L);
        places[i] = origin.equals(before) ? end : withPhase(end, fileOffset);
        sizes.put(origin, Math.addExact(places[i], part.length()));
        before = origin;
      }
      fileOffset += part.length();
    }
    return places;
  }

  /// Returns the first offset, at `end` or after it, that equals `fileOffset` modulo the block size.
  private static long withPhase(long end, long fileOffset) {
    long block = PlanLimits.BLOCK_BYTES;
    return Math.addExact(end, Math.floorMod(fileOffset - end, block));
  }

  private static @Nullable Device origin(Source part) {
    return switch (part) {
      case Memory.OnHost _ -> Device.HOST;
      case Memory.OnDevice memory -> memory.device();
      case Source.FilePart _ -> null;
    };
  }

  /// Returns how many bytes of memory the parts on each device need.
  Map<Device, Long> sizes() {
    return sizes;
  }

  /// Makes the copies.
  ///
  /// @param slabs a slab for each device in [#sizes]
  /// @return the files, with their parts in these slabs
  List<NewFile> run(Map<Device, Slab> slabs) {
    atRest = false;
    try {
      for (Device device : slabs.keySet()) {
        if (device instanceof Device.Cuda cuda) {
          CudaContext context = CudaContext.of(cuda);
          // The copies use a stream of their own, so work that is queued on other streams must end
          // first.
          context.synchronize();
          queues.put(cuda, new CopyQueue(context));
        }
      }
      List<NewFile> copied = new ArrayList<>(files.size());
      for (int i = 0; i < files.size(); i++) {
        copied.add(copy(files.get(i), offsets.get(i), slabs));
      }
      copyOnHost();
      queues.values().forEach(CopyQueue::drain);
      return copied;
    } finally {
      // Closing the queues waits for running copies, also after a failure, since the caller then
      // gives the memory back.
      CopyQueue.closeAll(queues.values());
      atRest = true;
    }
  }

  /// Returns whether all copies are known to have ended; false if waiting for a device failed.
  boolean isAtRest() {
    return atRest;
  }

  private NewFile copy(NewFile file, long[] places, Map<Device, Slab> slabs) {
    List<Source> parts = new ArrayList<>(places.length);
    for (int i = 0; i < places.length; i++) {
      Source part = file.parts().get(i);
      Slab slab = places[i] < 0 ? null : slabs.get(origin(part));
      parts.add(slab == null ? part : copy(part, slab, places[i]));
    }
    return new NewFile(file.file(), parts);
  }

  /// Queues the copy of one part.
  ///
  /// @return the copy of the part in the slab
  private Source copy(Source part, Slab slab, long offset) {
    Source place =
        switch (slab) {
          case CpuSlab cpu -> new Memory.OnHost(cpu.segment().asSlice(offset, part.length()));
          case DeviceSlab device ->
              new Memory.OnDevice(
                  device.context().device(), device.address() + offset, part.length());
        };
    switch (part) {
      case Memory.OnHost(MemorySegment from) -> {
        MemorySegment to = ((CpuSlab) slab).segment().asSlice(offset, from.byteSize());
        for (long done = 0; done < from.byteSize(); done += STEP_BYTES) {
          long step = Math.min(STEP_BYTES, from.byteSize() - done);
          hostCopies.add(new HostCopy(from.asSlice(done, step), to.asSlice(done, step)));
        }
      }
      case Memory.OnDevice memory -> {
        CopyQueue queue = Objects.requireNonNull(queues.get(memory.device()));
        long target = slab.address() + offset;
        switch (slab) {
          case DeviceSlab _ -> queue.copyOnDevice(target, memory.address(), memory.length());
          case CpuSlab _ -> queue.copyToHost(target, memory.address(), memory.length());
        }
      }
      case Source.FilePart _ -> throw new IllegalStateException("a file has no place in memory");
    }
    return place;
  }

  private void copyOnHost() {
    int threads = Math.min(MAX_THREADS, Runtime.getRuntime().availableProcessors());
    WorkerThreads workers =
        new WorkerThreads(
            "copy", () -> "tensors in memory", "gantry-snapshot-", new Cancellation());
    workers.forEach(threads, hostCopies, copy -> copy.to().copyFrom(copy.from()), () -> {});
  }
}
