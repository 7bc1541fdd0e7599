// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Availability;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Registers device memory with cuFile, so that a disk writes into the memory without a bounce
/// buffer, and keeps the memory registered while a load may use it again. `docs/memory.md` has the
/// rules of GPUDirect RDMA that this class keeps:
///
/// 1. A registration takes up part of the GPU's BAR1 window, so each device has a budget.
/// 2. A mapping covers one allocation. Memory is registered with its whole allocation, so that two
/// regions never overlap and never share a page of the window. A [Slab] is registered alone, since
/// its allocation holds nothing else.
/// 3. Pinning is slow, so a region stays registered when its user is done and its load is not.
/// When another region needs its part of the window, the least recently used region that is not in
/// use is deregistered.
/// 4. Memory that is freed and allocated again at the same address is different memory. The
/// driver's `CU_POINTER_ATTRIBUTE_BUFFER_ID` shows that.
/// 5. Memory must be deregistered before it is freed, or nvidia-fs may deadlock. A [Slab] stays
/// registered until just before it is freed. The owner of other memory may free that memory when a
/// load has ended, so it is deregistered when the last [Load] that used it ends.
///
/// If memory cannot be registered, its [Use] says why. Thread-safe.
public final class RegistrationCache {
  private static final Logger LOG = LoggerFactory.getLogger(RegistrationCache.class);

  /// The causes of refusals that were logged. Each cause is logged once in a process.
  private static final Set<Failure> TOLD = ConcurrentHashMap.newKeySet();

  /// The largest number of regions that stay registered while they are not in use.
  private static final int MAX_IDLE = 16_384;

  /// The driver and libcufile, as the cache needs them.
  public interface Hardware {
    /// An allocation that can be registered.
    ///
    /// @param id a number that no other allocation has
    record Allocation(long base, long bytes, long id) {
      long end() {
        return base + bytes;
      }
    }

    /// Returns the allocation that holds `address`, or why it cannot be registered.
    Availability<Allocation> allocation(Device.Cuda device, long address);

    /// Returns the number of the allocation that holds `address` now.
    long id(Device.Cuda device, long address);

    /// Returns the most bytes to register at once; called once for each device.
    long budgetBytes(Device.Cuda device);

    /// @throws TransferException if cuFile refuses
    void register(Device.Cuda device, MemorySegment region);

    /// @throws TransferException if cuFile fails
    void deregister(Device.Cuda device, MemorySegment region);
  }

  private final Hardware hardware;
  private final Map<Device.Cuda, Window> windows = new HashMap<>();

  /// The regions of slabs, each in use until it is forgotten.
  private final Map<DeviceSlab, Region> slabs = new HashMap<>();

  /// Made with the cache, so that deregistering slabs needs no heap.
  private final Consumer<Slab> forget = this::forgetAny;

  public RegistrationCache(Hardware hardware) {
    this.hardware = hardware;
  }

  /// The window of one device, and the regions in the window, which do not overlap.
  private final class Window {
    private final Device.Cuda device;
    private final TreeMap<Long, Region> byStart = new TreeMap<>();

    /// The regions that are not in use, the least recently used first.
    private final SequencedSet<Region> idle = new LinkedHashSet<>();

    private long bytesLeft;

    Window(Device.Cuda device) {
      this.device = device;
      this.bytesLeft = hardware.budgetBytes(device);
    }

    /// @param load the load that uses the memory; null for a slab, which is registered alone,
    ///     without the other memory of its allocation
    Use use(long address, long bytes, @Nullable Load load) {
      Map.Entry<Long, Region> below = byStart.floorEntry(address);
      if (below != null && below.getValue().serves(address, bytes)) {
        return below.getValue().enter(load);
      }
      return switch (hardware.allocation(device, address)) {
        case Availability.Absent<Hardware.Allocation>(String reason) -> new Use(null, reason);
        case Availability.Present<Hardware.Allocation>(Hardware.Allocation all) ->
            address + bytes > all.end()
                ? new Use(null, "it reaches past the end of its allocation")
                : load == null
                    ? useNew(address, address + bytes, all.id(), null)
                    : useNew(all.base(), all.end(), all.id(), load);
      };
    }

    private Use useNew(long start, long end, long id, @Nullable Load load) {
      List<Region> overlapping =
          byStart.headMap(end, false).descendingMap().values().stream()
              .takeWhile(old -> old.end > start)
              .toList();
      for (Region old : overlapping) {
        if (old.id != id) {
          old.forgetStale();
        } else if (old.users > 0) {
          return new Use(null, "another part of its allocation is in use");
        } else {
          old.deregister();
        }
      }
      long bytes = end - start;
      long room = bytesLeft + idle.stream().mapToLong(Region::bytes).sum();
      if (bytes > room) {
        return new Use(
            null,
            bytes
                + " bytes of "
                + device
                + " are not registered with cuFile: its BAR1 window has room for "
                + room
                + " more");
      }
      while (bytesLeft < bytes) {
        idle.getFirst().deregister();
      }
      return register(start, end, id, load);
    }

    private Use register(long start, long end, long id, @Nullable Load load) {
      TimedEvent event = TimedEvent.begun(EventKind.REGISTRATION);
      return Cleanup.orUndo(
          () -> registered(start, end, id),
          region -> {
            byStart.put(start, region);
            event.done("memory", device, end - start, region.refusal);
            return region.enter(load);
          },
          Region::deregister);
    }

    private Region registered(long start, long end, long id) {
      Region region = new Region(this, start, end, id, "");
      try {
        hardware.register(device, region.memory);
      } catch (TransferException refused) {
        String reason = "not registered with cuFile: " + refused.getMessage();
        if (TOLD.add(refused.failure())) {
          LOG.info("{}", reason);
        }
        return new Region(this, start, end, id, reason);
      }
      bytesLeft -= region.bytes();
      LiveResources.add(LiveResources.Kind.REGISTRATIONS, 1);
      return region;
    }

    void deregisterIdle() {
      Cleanup.forEach(List.copyOf(idle), Region::deregister);
    }
  }

  /// A region that is registered, or that cuFile refused.
  private final class Region {
    final Window window;
    final long start;
    final long end;
    final long id;
    final String refusal;

    /// Made with the region, so that deregistering it needs no heap.
    final MemorySegment memory;

    /// The loads that have used the region and have not ended.
    final Set<Load> loads = new HashSet<>();

    int users;

    /// Whether the cache has forgotten the region while it was in use, since another allocation
    /// now has its addresses.
    boolean isForgotten;

    Region(Window window, long start, long end, long id, String refusal) {
      this.window = window;
      this.start = start;
      this.end = end;
      this.id = id;
      this.refusal = refusal;
      this.memory = MemorySegment.ofAddress(start).reinterpret(end - start);
    }

    /// Whether the region holds this memory. Memory in use is not freed, so a region in use still
    /// has the same allocation.
    boolean serves(long address, long bytes) {
      return address + bytes <= end && (users > 0 || id == hardware.id(window.device, address));
    }

    long bytes() {
      return refusal.isEmpty() ? end - start : 0;
    }

    Use enter(@Nullable Load load) {
      Use use = new Use(this, refusal);
      if (load != null) {
        load.regions.add(this);
        loads.add(load);
      }
      users++;
      window.idle.remove(this);
      return use;
    }

    void leave() {
      users--;
      if (users > 0) {
        return;
      }
      if (isForgotten) {
        deregisterStale();
        return;
      }
      if (loads.isEmpty()) {
        deregister();
        return;
      }
      window.idle.add(this);
      if (window.idle.size() > MAX_IDLE) {
        window.idle.getFirst().deregister();
      }
    }

    void end(Load load) {
      loads.remove(load);
      if (loads.isEmpty() && users == 0 && window.byStart.get(start) == this) {
        deregister();
      }
    }

    /// Deregisters the region. If cuFile fails, the region stays, and a later call tries again.
    void deregister() {
      if (refusal.isEmpty()) {
        hardware.deregister(window.device, memory);
        giveBack();
      }
      remove();
    }

    private void giveBack() {
      window.bytesLeft += bytes();
      LiveResources.add(LiveResources.Kind.REGISTRATIONS, -1);
    }

    private void remove() {
      window.byStart.remove(start);
      window.idle.remove(this);
    }

    /// Forgets the region, whose memory was freed without notice; another allocation now has its
    /// addresses.
    void forgetStale() {
      remove();
      isForgotten = true;
      if (users == 0) {
        deregisterStale();
      }
    }

    private void deregisterStale() {
      if (refusal.isEmpty()) {
        try {
          hardware.deregister(window.device, memory);
        } catch (TransferException failed) {
          // The driver unpinned the region when its memory was freed.
          LOG.info("{}", failed.getMessage());
        }
        giveBack();
      }
    }
  }

  /// A caller's use of memory. While it is open, the memory's region stays registered.
  public final class Use implements AutoCloseable {
    private final @Nullable Region region;
    private final String refusal;
    private boolean closed;

    private Use(@Nullable Region region, String refusal) {
      this.region = region;
      this.refusal = refusal;
    }

    /// Returns why the memory is not registered; empty if it is.
    public String refusal() {
      return refusal;
    }

    /// Returns the registered region that holds the memory, which calls of cuFile must name.
    ///
    /// @throws NullPointerException if the memory is not registered
    public MemorySegment base() {
      return Objects.requireNonNull(region).memory;
    }

    @Override
    public void close() {
      synchronized (RegistrationCache.this) {
        if (!closed && region != null) {
          region.leave();
        }
        closed = true;
      }
    }
  }

  /// One load's uses of memory that is not a slab. Thread-safe.
  public final class Load implements AutoCloseable {
    private final Set<Region> regions = new HashSet<>();

    /// Made with the load, so that closing it needs no heap.
    private final Consumer<Region> end = this::end;

    private Load() {}

    private void end(Region region) {
      region.end(this);
    }

    /// Begins a use of memory, and registers its allocation if that is possible.
    public Use use(Device.Cuda device, long address, long bytes) {
      synchronized (RegistrationCache.this) {
        return window(device).use(address, bytes, this);
      }
    }

    /// Deregisters the regions that this load has used and no other load uses.
    ///
    /// @throws TransferException if cuFile fails: the owner must not free the memory then
    @Override
    public void close() {
      synchronized (RegistrationCache.this) {
        Cleanup.forEach(regions, end);
      }
    }
  }

  /// Begins a load. The caller closes it when none of its reads is under way.
  public Load begin() {
    return new Load();
  }

  /// Begins a use of a slab. The first use registers the slab until it is freed or [#forget] is called.
  public synchronized Use use(DeviceSlab slab) {
    Window window = window(slab.context().device());
    if (!slabs.containsKey(slab)) {
      Use held = hold(window, slab);
      if (held.region == null) {
        return held;
      }
    }
    return window.use(slab.address(), slab.size(), null);
  }

  private Use hold(Window window, DeviceSlab slab) {
    return Cleanup.orUndo(
        () -> window.use(slab.address(), slab.size(), null),
        held -> {
          if (held.region != null) {
            slab.beforeFree(() -> forget(slab));
            slabs.put(slab, held.region);
          }
          return held;
        },
        Use::close);
  }

  private Window window(Device.Cuda device) {
    return windows.computeIfAbsent(device, Window::new);
  }

  /// Deregisters a slab that is about to be freed, or that no read will fill again.
  ///
  /// @throws TransferException if cuFile fails: the slab must not be freed then
  public synchronized void forget(DeviceSlab slab) {
    Region region = slabs.get(slab);
    if (region == null) {
      return;
    }
    if (!region.isForgotten) {
      region.deregister();
      region.isForgotten = true;
    }
    slabs.remove(slab);
  }

  private void forgetAny(Slab slab) {
    if (slab instanceof DeviceSlab device) {
      forget(device);
    }
  }

  /// Deregisters each registered slab among `some`, as [#forget(DeviceSlab)] does.
  public void forget(Collection<? extends Slab> some) {
    Cleanup.forEach(some, forget);
  }

  /// Deregisters all slabs, and all regions that are not in use, before the session closes the driver.
  public synchronized void clear() {
    try {
      forget(List.copyOf(slabs.keySet()));
    } finally {
      Cleanup.forEach(windows.values(), Window::deregisterIdle);
    }
  }
}
