// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Availability;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedSet;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Registers device memory with cuFile, so that a disk writes into it without a bounce buffer, and keeps it
/// registered for later. `docs/memory.md` has the rules of GPUDirect RDMA that this class keeps:
///
/// 1. A registration takes room in the GPU's BAR1 window, so each device has a budget.
/// 2. A mapping covers one allocation. Memory is registered with the whole allocation that has it, so that two
///    regions never overlap nor share a page of the window; a [Slab] is registered by itself, since it has its
///    allocation for itself.
/// 3. Pinning is slow, so a region stays registered when its user is done. When another region needs the room,
///    the least recently used one is deregistered, but none that is in use.
/// 4. Memory that is freed and allocated again at the same address is other memory. The driver's
///    `CU_POINTER_ATTRIBUTE_BUFFER_ID` shows that.
/// 5. A [Slab] stays registered until it is freed, and is deregistered just before that. Other memory may be
///    freed without notice; [#freeIdle] gives up its registrations that are not in use.
///
/// A [Use] says why its memory is not registered, if it cannot be. Thread-safe.
public final class RegistrationCache {
  private static final Logger LOG = LoggerFactory.getLogger(RegistrationCache.class);

  /// How many regions that are not in use stay registered.
  private static final int MAX_IDLE = 16_384;

  /// The driver and libcufile, as the cache needs them.
  public interface Hardware {
    /// An allocation that can be registered.
    ///
    /// @param id a number that no other allocation has
    record Allocation(long base, long bytes, long id) {}

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
  private final Map<Device.Cuda, Regions> devices = new HashMap<>();
  private final Map<DeviceSlab, Use> slabs = new HashMap<>();
  private boolean wasRefused;

  public RegistrationCache(Hardware hardware) {
    this.hardware = hardware;
  }

  /// A region that is registered, or that cuFile refused.
  private static final class Region {
    final long start;
    final long end;
    final long id;
    final String refusal;
    int users;

    /// Whether the cache has forgotten the region while it was in use, since its memory is other memory now.
    boolean isForgotten;

    Region(long start, long end, long id, String refusal) {
      this.start = start;
      this.end = end;
      this.id = id;
      this.refusal = refusal;
    }

    boolean covers(long address, long bytes) {
      return start <= address && address + bytes <= end;
    }

    long bytes() {
      return refusal.isEmpty() ? end - start : 0;
    }

    MemorySegment memory() {
      return MemorySegment.ofAddress(start).reinterpret(end - start);
    }
  }

  /// The regions of one device. They do not overlap.
  private static final class Regions {
    final TreeMap<Long, Region> byStart = new TreeMap<>();

    /// The regions that are not in use, the least recently used first.
    private final SequencedSet<Region> idle = new LinkedHashSet<>();

    private long idleBytes;
    long bytesLeft;

    Regions(long budgetBytes) {
      bytesLeft = budgetBytes;
    }

    @Nullable Region holding(long address, long bytes) {
      Map.Entry<Long, Region> entry = byStart.floorEntry(address);
      return entry != null && entry.getValue().covers(address, bytes) ? entry.getValue() : null;
    }

    /// Returns the regions that overlap this range.
    List<Region> overlapping(long start, long end) {
      List<Region> overlapping = new ArrayList<>(byStart.subMap(start, end).values());
      Map.Entry<Long, Region> before = byStart.lowerEntry(start);
      if (before != null && before.getValue().end > start) {
        overlapping.add(before.getValue());
      }
      return overlapping;
    }

    void addIdle(Region region) {
      idle.add(region);
      idleBytes += region.bytes();
    }

    void removeIdle(Region region) {
      if (idle.remove(region)) {
        idleBytes -= region.bytes();
      }
    }

    void remove(Region region) {
      byStart.remove(region.start);
      removeIdle(region);
    }

    /// Returns how many bytes a new region may have, if idle ones are deregistered for it.
    long room() {
      return bytesLeft + idleBytes;
    }
  }

  /// A caller's use of memory. While it is open, the memory's region stays registered.
  public final class Use implements AutoCloseable {
    private final Device.Cuda device;
    private final @Nullable Region region;
    private final String refusal;
    private boolean closed;

    private Use(Device.Cuda device, @Nullable Region region, String refusal) {
      this.device = device;
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
      return Objects.requireNonNull(region).memory();
    }

    @Override
    public void close() {
      synchronized (RegistrationCache.this) {
        if (!closed && region != null) {
          leave(device, region);
        }
        closed = true;
      }
    }
  }

  /// Begins a use of memory, and registers its allocation if that is possible.
  public synchronized Use use(Device.Cuda device, long address, long bytes) {
    return use(device, address, bytes, false);
  }

  /// @param alone whether to register these bytes alone, and not the rest of their allocation
  private Use use(Device.Cuda device, long address, long bytes, boolean alone) {
    Regions regions = regions(device);
    Region found = regions.holding(address, bytes);
    // Memory in use is not freed, so its allocation is still the same.
    if (found != null && (found.users > 0 || found.id == hardware.id(device, address))) {
      return enter(device, regions, found);
    }
    return switch (hardware.allocation(device, address)) {
      case Availability.Absent<Hardware.Allocation>(String reason) -> refused(device, reason);
      case Availability.Present<Hardware.Allocation>(Hardware.Allocation all) ->
          address + bytes > all.base() + all.bytes()
              ? refused(device, "it reaches past the end of its allocation")
              : alone
                  ? useNew(device, regions, address, address + bytes, all.id())
                  : useNew(device, regions, all.base(), all.base() + all.bytes(), all.id());
    };
  }

  /// Begins a use of a slab. The first use registers the slab until it is freed or [#forget] is called.
  public synchronized Use use(DeviceSlab slab) {
    Device.Cuda device = slab.context().device();
    if (!slabs.containsKey(slab)) {
      Use held = use(device, slab.address(), slab.size(), true);
      if (held.region == null) {
        return held;
      }
      slabs.put(slab, held);
      Cleanup.orUndo(
          () -> {
            slab.beforeFree(() -> forget(slab));
            return slab;
          },
          () -> forget(slab));
    }
    return use(device, slab.address(), slab.size(), true);
  }

  private Regions regions(Device.Cuda device) {
    return devices.computeIfAbsent(device, unknown -> new Regions(hardware.budgetBytes(unknown)));
  }

  private Use refused(Device.Cuda device, String reason) {
    return new Use(device, null, reason);
  }

  private Use enter(Device.Cuda device, Regions regions, Region region) {
    region.users++;
    regions.removeIdle(region);
    return new Use(device, region, region.refusal);
  }

  private void leave(Device.Cuda device, Region region) {
    region.users--;
    if (region.users > 0) {
      return;
    }
    Regions regions = regions(device);
    if (region.isForgotten) {
      deregisterStale(device, regions, region);
      return;
    }
    regions.addIdle(region);
    if (regions.idle.size() > MAX_IDLE) {
      deregister(device, regions, regions.idle.getFirst());
    }
  }

  private Use useNew(Device.Cuda device, Regions regions, long start, long end, long id) {
    List<Region> idle = new ArrayList<>();
    for (Region old : regions.overlapping(start, end)) {
      if (old.id != id) {
        forgetStale(device, regions, old);
      } else if (old.users > 0) {
        return refused(device, "another part of its allocation is in use");
      } else {
        idle.add(old);
      }
    }
    if (end - start > regions.room()) {
      return refused(
          device,
          (end - start)
              + " bytes of "
              + device
              + " are not registered with cuFile: its BAR1 window has room for "
              + regions.room()
              + " more");
    }
    idle.forEach(old -> deregister(device, regions, old));
    while (regions.bytesLeft < end - start) {
      deregister(device, regions, regions.idle.getFirst());
    }
    return enter(device, regions, register(device, regions, start, end, id));
  }

  private Region register(Device.Cuda device, Regions regions, long start, long end, long id) {
    Region region = new Region(start, end, id, "");
    TimedEvent event = TimedEvent.begun(EventKind.REGISTRATION);
    try {
      hardware.register(device, region.memory());
      regions.bytesLeft -= region.bytes();
      LiveResources.add(LiveResources.Kind.REGISTRATIONS, 1);
    } catch (TransferException refused) {
      region = new Region(start, end, id, "not registered with cuFile: " + refused.getMessage());
      // Only one refusal is logged, since the next ones most likely have the same reason.
      if (!wasRefused) {
        LOG.info("{}", region.refusal);
      }
      wasRefused = true;
    }
    event.done("memory", device, end - start, region.refusal);
    regions.byStart.put(start, region);
    return region;
  }

  /// Deregisters a region that is not in use. If cuFile fails, the region stays, and a later call tries again.
  private void deregister(Device.Cuda device, Regions regions, Region region) {
    if (region.refusal.isEmpty()) {
      hardware.deregister(device, region.memory());
      returned(regions, region);
    }
    regions.remove(region);
  }

  private static void returned(Regions regions, Region region) {
    regions.bytesLeft += region.bytes();
    LiveResources.add(LiveResources.Kind.REGISTRATIONS, -1);
  }

  /// Forgets a region whose memory was freed without notice and is now another allocation's.
  private void forgetStale(Device.Cuda device, Regions regions, Region region) {
    regions.remove(region);
    region.isForgotten = true;
    if (region.users == 0) {
      deregisterStale(device, regions, region);
    }
  }

  private void deregisterStale(Device.Cuda device, Regions regions, Region region) {
    if (region.refusal.isEmpty()) {
      try {
        hardware.deregister(device, region.memory());
      } catch (TransferException failed) {
        // The driver has unpinned the region when its memory was freed.
        LOG.info("{}", failed.getMessage());
      }
      returned(regions, region);
    }
  }

  /// Deregisters a slab, before it is freed or because it will not be read into again.
  ///
  /// @throws TransferException if cuFile fails: the slab must not be freed then
  public synchronized void forget(DeviceSlab slab) {
    Use held = slabs.get(slab);
    if (held == null) {
      return;
    }
    Region region = Objects.requireNonNull(held.region);
    if (!region.isForgotten) {
      deregister(held.device, regions(held.device), region);
      region.isForgotten = true;
    }
    slabs.remove(slab);
  }

  /// Deregisters those of `some` that are registered slabs, as [#forget(DeviceSlab)] does.
  public void forget(Collection<? extends Slab> some) {
    Cleanup.runAll(
        some.stream()
            .<Runnable>mapMulti((slab, actions) -> {
              if (slab instanceof DeviceSlab device) {
                actions.accept(() -> forget(device));
              }
            })
            .toList());
  }

  /// Deregisters all regions that are not in use.
  public synchronized void freeIdle() {
    List<Runnable> actions = new ArrayList<>();
    devices.forEach((device, regions) ->
        regions.idle.forEach(region -> actions.add(() -> deregister(device, regions, region))));
    Cleanup.runAll(actions);
  }

  /// Deregisters all slabs, and all regions that are not in use, before the session closes the driver.
  public synchronized void clear() {
    forget(List.copyOf(slabs.keySet()));
    freeIdle();
  }
}
