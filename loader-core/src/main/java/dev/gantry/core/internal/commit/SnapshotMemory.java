package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.CudaDriver;
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

/// Memory for snapshots, kept from one to the next: taking and pinning it takes longer than filling
/// it.
///
/// Bounded by its limits, and by what devices and the CPU have to give when more is needed.
/// Thread-safe.
public final class SnapshotMemory implements AutoCloseable {
  /// Memory for the bytes that come from `origin`.
  private record Home(Device origin, Slab slab) {
    boolean isOn(Device device) {
      return slab.device().equals(device);
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(SnapshotMemory.class);

  /// This part of the CPU's memory is left alone.
  private static final int SPARED_PART = 8;

  private final SnapshotLimits limits;

  /// All there are, those in use included.
  private final List<Home> homes = new ArrayList<>();

  private final List<Home> idle = new ArrayList<>();

  /// Copies into these may be under way: a device failed, and did not say when it was done.
  private final List<Home> inDoubt = new ArrayList<>();

  private boolean closed;

  public SnapshotMemory(SnapshotLimits limits) {
    this.limits = limits;
  }

  /// Copies all bytes of the files' parts that are in memory; parts of files stay as they are.
  /// Whatever was queued on a device before comes first. When this returns, the copies are made.
  ///
  /// @return empty where the limits, a device or the CPU leave no room for that much
  /// @throws TransferException if a device fails, or the caller is interrupted
  public Optional<Snapshot> take(List<NewFile> files) {
    SnapshotLayout layout = SnapshotLayout.of(files);
    Optional<Map<Device, Slab>> taken = take(layout.sizes());
    if (taken.isEmpty()) {
      return Optional.empty();
    }
    Map<Device, Slab> slabs = taken.get();
    SnapshotCopy copy = new SnapshotCopy(layout, slabs);
    boolean complete = false;
    try {
      copy.run();
      complete = true;
      return Optional.of(new Snapshot(layout.moved(slabs), () -> giveBack(slabs)));
    } finally {
      if (!complete) {
        giveBack(slabs, copy.isAtRest());
      }
    }
  }

  private synchronized Optional<Map<Device, Slab>> take(Map<Device, Long> sizes) {
    if (closed) {
      throw new MisuseException("this snapshot memory is closed");
    }
    settle();
    Map<Device, Slab> slabs = new HashMap<>();
    boolean complete = false;
    try {
      for (Map.Entry<Device, Long> need : sizes.entrySet()) {
        Slab slab = take(need.getKey(), need.getValue());
        if (slab == null) {
          return Optional.empty();
        }
        slabs.put(need.getKey(), slab);
      }
      complete = true;
      return Optional.of(slabs);
    } finally {
      if (!complete) {
        giveBack(slabs);
      }
    }
  }

  private @Nullable Slab take(Device origin, long bytes) {
    Optional<Home> fitting =
        idle.stream()
            .filter(home -> home.origin().equals(origin) && home.slab().size() >= bytes)
            .min(Comparator.comparingLong(home -> home.slab().size()));
    if (fitting.isPresent()) {
      idle.remove(fitting.get());
      return fitting.get().slab();
    }
    // Too small for this one, and so for those to come.
    List<Home> small = idle.stream().filter(home -> home.origin().equals(origin)).toList();
    small.forEach(this::free);
    Slab slab =
        switch (origin) {
          case Device.Host _ -> onHost(bytes, () -> HostSlab.allocate(bytes));
          case Device.Cuda cuda -> allocateFor(CudaContext.of(cuda), bytes);
        };
    if (slab != null) {
      homes.add(new Home(origin, slab));
    }
    return slab;
  }

  private @Nullable Slab allocateFor(CudaContext context, long bytes) {
    Slab onDevice =
        bytes <= limits.deviceBytes() - held(context.device()) && hasRoom(context, bytes)
            ? unlessRefused(context.device(), () -> DeviceSlab.allocate(context, bytes))
            : null;
    return onDevice == null ? onHost(bytes, () -> PinnedSlab.allocate(context, bytes)) : onDevice;
  }

  private @Nullable Slab onHost(long bytes, Supplier<Slab> allocation) {
    return hasHostRoom(bytes) ? unlessRefused(Device.HOST, allocation) : null;
  }

  /// What there seemed to be room for may be refused still, as pinned memory is.
  private static @Nullable Slab unlessRefused(Device device, Supplier<Slab> allocation) {
    try {
      return allocation.get();
    } catch (TransferException refused) {
      LOG.info("no snapshot on {}: {}", device, refused.getMessage());
      return null;
    }
  }

  private static boolean hasRoom(CudaContext context, long bytes) {
    CudaDriver driver = context.driver();
    try (var _ = context.enter()) {
      return bytes <= driver.memoryInfo().freeBytes();
    }
  }

  private boolean hasHostRoom(long bytes) {
    return bytes <= limits.hostBytes() - held(Device.HOST) && bytes <= mostHostBytes();
  }

  /// Not to the last byte, which the training wants.
  private static long mostHostBytes() {
    long available = HostMemory.availableBytes().orElse(Long.MAX_VALUE);
    return available - available / SPARED_PART;
  }

  private long held(Device device) {
    return homes.stream()
        .filter(home -> home.isOn(device))
        .mapToLong(home -> home.slab().size())
        .sum();
  }

  private void giveBack(Map<Device, Slab> slabs) {
    giveBack(slabs, true);
  }

  /// @param atRest whether no copy into them is under way
  private synchronized void giveBack(Map<Device, Slab> slabs, boolean atRest) {
    List<Home> used =
        homes.stream().filter(home -> slabs.get(home.origin()) == home.slab()).toList();
    if (atRest) {
      used.forEach(this::keep);
    } else {
      inDoubt.addAll(used);
      settle();
    }
  }

  /// Keeps what a device is done with by now.
  private void settle() {
    List<Home> settled = inDoubt.stream().filter(SnapshotMemory::isAtRest).toList();
    inDoubt.removeAll(settled);
    settled.forEach(this::keep);
  }

  private static boolean isAtRest(Home home) {
    return switch (home.origin()) {
      case Device.Host _ -> true;
      case Device.Cuda cuda -> CudaContext.of(cuda).comesToRest();
    };
  }

  private void keep(Home home) {
    idle.add(home);
    if (closed) {
      free(home);
    }
  }

  private void free(Home home) {
    idle.remove(home);
    homes.remove(home);
    home.slab().release();
  }

  /// Frees all memory that is not in use; the rest goes when it is given back. What a failed device
  /// may still write to stays, until closing again finds that the device is done.
  @Override
  public synchronized void close() {
    closed = true;
    settle();
    List.copyOf(idle).forEach(this::free);
  }
}
