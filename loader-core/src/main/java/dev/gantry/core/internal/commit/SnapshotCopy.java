package dev.gantry.core.internal.commit;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.transport.CopyQueue;
import dev.gantry.core.internal.transport.WorkerThreads;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;

/// The copies of one snapshot: those from devices are queued first, and run while this CPU copies
/// its own. For one use, by one thread.
final class SnapshotCopy {
  /// What one thread copies at a time.
  private static final long STEP_BYTES = 16 << 20;

  private static final int MOST_THREADS = 8;

  private record HostCopy(MemorySegment from, MemorySegment to) {}

  private final SnapshotLayout layout;
  private final Map<Device, Slab> slabs;
  private final Map<Device.Cuda, CopyQueue> queues = new HashMap<>();
  private final List<HostCopy> hostCopies = new ArrayList<>();
  private boolean atRest;

  SnapshotCopy(SnapshotLayout layout, Map<Device, Slab> slabs) {
    this.layout = layout;
    this.slabs = slabs;
  }

  void run() {
    try {
      for (Device device : slabs.keySet()) {
        if (device instanceof Device.Cuda cuda) {
          CudaContext context = CudaContext.of(cuda);
          // The copies are ordered with no stream but their own.
          context.synchronize();
          queues.put(cuda, new CopyQueue(context));
        }
      }
      for (int i = 0; i < layout.files().size(); i++) {
        List<Source> parts = layout.files().get(i).parts();
        for (int j = 0; j < parts.size(); j++) {
          SnapshotLayout.Place place = layout.places().get(i).get(j);
          if (place != null) {
            copy(parts.get(j), Objects.requireNonNull(slabs.get(place.origin())), place.offset());
          }
        }
      }
      copyOnHost();
      queues.values().forEach(CopyQueue::drain);
    } finally {
      // Waits for copies under way, also after a failure: the memory is given back after this.
      CopyQueue.closeAll(queues.values());
      atRest = true;
    }
  }

  /// After [#run]: whether no copy is under way any more, so far as is known.
  boolean isAtRest() {
    return atRest;
  }

  private void copy(Source part, Slab slab, long offset) {
    switch (part) {
      case Source.HostMemory(MemorySegment segment) -> {
        MemorySegment to = ((CpuSlab) slab).segment().asSlice(offset, segment.byteSize());
        for (long done = 0; done < segment.byteSize(); done += STEP_BYTES) {
          long step = Math.min(STEP_BYTES, segment.byteSize() - done);
          hostCopies.add(new HostCopy(segment.asSlice(done, step), to.asSlice(done, step)));
        }
      }
      case Source.DeviceMemory memory -> {
        CopyQueue queue = Objects.requireNonNull(queues.get(memory.device()));
        long target = slab.address() + offset;
        switch (slab) {
          case DeviceSlab _ -> queue.copyOnDevice(target, memory.address(), memory.length());
          case CpuSlab _ -> queue.copyToHost(target, memory.address(), memory.length());
        }
      }
      case Source.FilePart _ -> throw new IllegalStateException("a file has no place in memory");
    }
  }

  private void copyOnHost() {
    int threads =
        Math.min(
            hostCopies.size(), Math.min(MOST_THREADS, Runtime.getRuntime().availableProcessors()));
    AtomicInteger next = new AtomicInteger();
    WorkerThreads crew = new WorkerThreads("snapshot", "gantry-snapshot-", new Cancellation());
    crew.work(
        threads,
        () -> {
          for (int i = next.getAndIncrement();
              i < hostCopies.size() && crew.goesOn();
              i = next.getAndIncrement()) {
            hostCopies.get(i).to().copyFrom(hostCopies.get(i).from());
          }
        },
        () -> {});
  }
}
