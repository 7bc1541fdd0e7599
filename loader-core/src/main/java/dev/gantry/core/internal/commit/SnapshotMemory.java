// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Memory for snapshots. It is kept from one snapshot to the next, since allocating and pinning memory takes
/// longer than filling it.
///
/// [SnapshotLimits] and the free memory of the devices and the host bound its size. Thread-safe.
public final class SnapshotMemory implements AutoCloseable {
  /// A slab for the bytes that come from `origin`.
  private record KeptSlab(Device origin, Slab slab) {
    boolean isOn(Device device) {
      return slab.device().equals(device);
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(SnapshotMemory.class);

  /// One part in this many of the available host memory is left to the training and never used for
  /// snapshots.
  private static final int SPARED_PART = 8;

  /// How many bytes more than needed [#prepare] takes, since the headers of later files may be
  /// longer.
  private static final long SPARE_BYTES = 1 << 20;

  private final SnapshotLimits limits;

  /// All slabs, including those in use.
  private final List<KeptSlab> all = new ArrayList<>();

  private final List<KeptSlab> idle = new ArrayList<>();

  /// Slabs into which copies may still run, because waiting for their device failed.
  private final List<KeptSlab> inDoubt = new ArrayList<>();

  private boolean closed;

  public SnapshotMemory(SnapshotLimits limits) {
    this.limits = limits;
  }

  /// The memory for one snapshot of some files, not filled yet. Call [#fill], once, or [#giveBack].
  public final class Reserved {
    private final Supplier<Snapshot> filled;
    private final Runnable giveBack;

    /// @param slabs an empty map, which is filled later: the actions that give the slabs back are
    ///     made before any slab is taken
    private Reserved(SnapshotCopy copy, Map<Device, Slab> slabs) {
      giveBack = () -> SnapshotMemory.this.giveBack(slabs, copy.isAtRest());
      filled = () -> new Snapshot(copy.run(slabs), giveBack);
    }

    /// Copies all parts of the files that are in memory, after all work that is queued on their
    /// devices; parts that are in other files are not copied. Returns when the copies are
    /// complete. If this throws, the memory is given back.
    ///
    /// @throws TransferException if a device fails, or the caller is interrupted
    public Snapshot fill() {
      return Cleanup.orUndo(filled, giveBack);
    }

    /// Gives the memory back, unless that was done.
    public void giveBack() {
      giveBack.run();
    }
  }

  /// Returns text for a log: how much memory a snapshot needs, and how much it may take.
  public String words(List<NewFile> files) {
    long bytes = new SnapshotCopy(files).sizes().values().stream().mapToLong(size -> size).sum();
    String host =
        limits.hostBytes() == Long.MAX_VALUE
            ? "seven eighths of the host memory that is free"
            : limits.hostBytes() + " of host memory, as far as there are";
    return "a snapshot takes %s bytes; optSnapshots allows %s on each device and %s"
        .formatted(bytes, limits.deviceBytes(), host);
  }

  /// Takes the memory for a snapshot of these files.
  ///
  /// @return empty if the limits do not allow that much, or a device or the host has too little
  ///     memory
  public Optional<Reserved> reserve(List<NewFile> files) {
    SnapshotCopy copy = new SnapshotCopy(files);
    Map<Device, Slab> slabs = new HashMap<>();
    Optional<Reserved> reserved = Optional.of(new Reserved(copy, slabs));
    return take(copy.sizes(), slabs) ? reserved : Optional.empty();
  }

  /// Takes memory for snapshots of files like these, so that the first snapshot need not allocate
  /// it. Does nothing if such memory was taken already, even if it is in use.
  ///
  /// @param files files of which only the sizes count; a header may be a little longer later
  /// @return whether the memory is there now
  public synchronized boolean prepare(List<NewFile> files) {
    Map<Device, Long> missing = new HashMap<>();
    new SnapshotCopy(files)
        .sizes()
        .forEach((origin, bytes) -> {
          if (all.stream()
              .noneMatch(kept -> kept.origin().equals(origin) && kept.slab().size() >= bytes)) {
            missing.put(origin, bytes + SPARE_BYTES);
          }
        });
    Map<Device, Slab> slabs = new HashMap<>();
    boolean taken = take(missing, slabs);
    try {
      for (Slab slab : slabs.values()) {
        if (slab instanceof HostSlab host) {
          host.touch();
        }
      }
    } finally {
      giveBack(slabs, true);
    }
    return taken;
  }

  /// Takes a slab for each device that bytes come from; takes none if memory for one of them is
  /// refused.
  private synchronized boolean take(Map<Device, Long> sizes, Map<Device, Slab> slabs) {
    if (closed) {
      throw new MisuseException("this snapshot memory is closed");
    }
    settle();
    return Cleanup.orUndo(
        () -> {
          for (Map.Entry<Device, Long> need : sizes.entrySet()) {
            KeptSlab kept = idle(need.getKey(), need.getValue());
            if (kept == null) {
              giveBack(slabs, true);
              return false;
            }
            // The slab is removed from `idle` only after it is in `slabs`, so that a failure
            // between the two steps does not lose it.
            slabs.put(need.getKey(), kept.slab());
            idle.remove(kept);
          }
          return true;
        },
        () -> giveBack(slabs, true));
  }

  /// Returns an idle slab for bytes of `origin`, and allocates one if no idle slab is large
  /// enough; null if the memory is refused.
  private @Nullable KeptSlab idle(Device origin, long bytes) {
    Optional<KeptSlab> fitting =
        idle.stream()
            .filter(kept -> kept.origin().equals(origin) && kept.slab().size() >= bytes)
            .min(Comparator.comparingLong(kept -> kept.slab().size()));
    if (fitting.isPresent()) {
      return fitting.get();
    }
    // These slabs are too small for this snapshot, and probably for those that follow.
    List<KeptSlab> small = idle.stream().filter(kept -> kept.origin().equals(origin)).toList();
    small.forEach(this::free);
    return switch (origin) {
      case Device.Host _ -> onHost(origin, bytes, () -> Admission.slab(bytes));
      case Device.Cuda cuda -> allocateFor(cuda, CudaContext.of(cuda), bytes);
    };
  }

  private @Nullable KeptSlab allocateFor(Device.Cuda origin, CudaContext context, long bytes) {
    KeptSlab onDevice =
        bytes <= limits.deviceBytes() - held(context.device())
            ? unlessRefused(origin, context.device(), () -> DeviceSlab.allocate(context, bytes))
            : null;
    return onDevice == null
        ? onHost(origin, bytes, () -> PinnedSlab.allocate(context, bytes))
        : onDevice;
  }

  private @Nullable KeptSlab onHost(Device origin, long bytes, Supplier<Slab> allocation) {
    long available = HostMemory.availableBytes().orElse(Long.MAX_VALUE);
    return bytes <= limits.hostBytes() - held(Device.HOST)
            && bytes <= available - available / SPARED_PART
        ? unlessRefused(origin, Device.HOST, allocation)
        : null;
  }

  /// Allocates an idle slab; null if the allocation is refused. Pinned memory may be refused even
  /// if enough memory seemed to be available.
  private @Nullable KeptSlab unlessRefused(
      Device origin, Device device, Supplier<Slab> allocation) {
    try {
      KeptSlab kept = Cleanup.orUndo(allocation, slab -> new KeptSlab(origin, slab), Slab::release);
      all.add(kept);
      idle.add(kept);
      return kept;
    } catch (TransferException refused) {
      LOG.info("no snapshot on {}: {}", device, refused.getMessage());
      return null;
    }
  }

  private long held(Device device) {
    return all.stream()
        .filter(kept -> kept.isOn(device))
        .mapToLong(kept -> kept.slab().size())
        .sum();
  }

  /// @param slabs empty afterwards
  /// @param atRest whether no copy into the slabs is running
  private synchronized void giveBack(Map<Device, Slab> slabs, boolean atRest) {
    // The loop runs backwards, since `keep` may remove the element.
    for (int i = all.size() - 1; i >= 0; i--) {
      KeptSlab kept = all.get(i);
      if (slabs.get(kept.origin()) == kept.slab()) {
        if (atRest) {
          keep(kept);
        } else {
          inDoubt.add(kept);
        }
      }
    }
    slabs.clear();
    settle();
  }

  /// Makes slabs in doubt idle if all work of their devices has ended by now.
  private void settle() {
    if (inDoubt.isEmpty()) {
      return;
    }
    List<KeptSlab> settled = inDoubt.stream().filter(SnapshotMemory::isAtRest).toList();
    inDoubt.removeAll(settled);
    settled.forEach(this::keep);
  }

  private static boolean isAtRest(KeptSlab kept) {
    return switch (kept.origin()) {
      case Device.Host _ -> true;
      case Device.Cuda cuda -> CudaContext.of(cuda).comesToRest();
    };
  }

  private void keep(KeptSlab kept) {
    idle.add(kept);
    if (closed) {
      free(kept);
    }
  }

  private void free(KeptSlab kept) {
    idle.remove(kept);
    all.remove(kept);
    kept.slab().release();
  }

  /// Frees all memory that is not in use; memory in use is freed when it is given back. Memory
  /// that a failed device may still write to stays allocated until another call finds that the
  /// device's work has ended.
  @Override
  public synchronized void close() {
    closed = true;
    settle();
    while (!idle.isEmpty()) {
      free(idle.getLast());
    }
  }
}
