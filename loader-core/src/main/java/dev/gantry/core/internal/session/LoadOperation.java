// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.LoadEvent;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Room;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.internal.transport.Transports;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// One load onto one device or several: allocate the plan's slabs on each, read, relocate. All or
/// nothing.
final class LoadOperation {
  private final Transports transports;
  private final ReadPlan plan;
  private final List<Device> devices;
  private final TransferOptions options;

  static final String CHANGE = "load fewer tensors at once, or close what is loaded and not needed";

  /// Reserved host memory; null before [#allocate], and where no device is the host.
  private HostMemory.@Nullable Reservation room;

  /// Of each device, the plan's slabs.
  private final List<List<Slab>> slabs = new ArrayList<>();

  /// @param devices each of which gets all of it; one at least
  LoadOperation(
      Transports transports, ReadPlan plan, List<Device> devices, TransferOptions options) {
    this.transports = transports;
    this.plan = plan;
    this.devices = devices;
    this.options = options;
  }

  /// @return one for each device, in their order, all with the report of the whole load
  List<Loaded> run() {
    LoadEvent event = new LoadEvent();
    event.begin();
    try {
      TransferReport report = transfer(options.withProgress(this::onProgress));
      for (int i = 0; i < devices.size(); i++) {
        relocate(devices.get(i), slabs.get(i));
      }
      List<Loaded> loaded = slabs.stream().map(each -> keepPlaced(each, report)).toList();
      transports.counters().addLoad(true);
      event.done(devices.getFirst(), plan.placements().size(), report);
      return loaded;
    } catch (RuntimeException | Error failure) {
      transports.counters().addLoad(false);
      event.failed(devices.getFirst(), plan.placements().size(), failure);
      slabs.forEach(each -> Slab.releaseAll(each, failure));
      throw failure;
    } finally {
      if (room != null) {
        room.close();
      }
    }
  }

  private TransferReport transfer(TransferOptions counted) {
    return devices.size() == 1
        ? transports.transfer(plan, devices.getFirst(), () -> allocate().getFirst(), counted)
        : transports.transferToEach(plan, devices, this::allocate, counted);
  }

  /// Filled memory needs no reservation: the kernel counts it.
  private void onProgress(long done, long total) {
    if (room != null) {
      room.keep(plan.allocatedBytes() - done);
    }
    options.progress().onProgress(done, total);
  }

  /// Asks for room on all devices before it takes any.
  private List<List<Slab>> allocate() {
    for (Device device : devices) {
      switch (device) {
        case Device.Host _ -> room = HostMemory.reserve(plan.allocatedBytes(), CHANGE);
        case Device.Cuda _ ->
            Room.require(
                MemoryUse.on(device, plan.slabSizes().stream().mapToLong(this::capacity).sum()),
                device,
                CHANGE);
      }
    }
    for (Device device : devices) {
      List<Slab> each = new ArrayList<>(plan.slabSizes().size());
      slabs.add(each);
      for (long size : plan.slabSizes()) {
        each.add(
            switch (device) {
              case Device.Host _ -> HostSlab.allocate(size);
              case Device.Cuda cuda ->
                  DeviceSlab.allocate(CudaContext.of(cuda), size, capacity(size));
            });
      }
    }
    return slabs;
  }

  private long capacity(long size) {
    return Math.max(size, options.slabCapacity());
  }

  private void relocate(Device device, List<Slab> slabs) {
    for (ReadPlan.Relocation move : plan.relocations()) {
      slabs
          .get(move.toSlab())
          .copyFrom(move.toOffset(), slabs.get(move.fromSlab()), move.fromOffset(), move.length());
    }
    if (!plan.relocations().isEmpty() && device instanceof Device.Cuda cuda) {
      CudaContext.of(cuda).synchronize();
    }
  }

  /// Releases slabs from which everything was relocated.
  private Loaded keepPlaced(List<Slab> slabs, TransferReport report) {
    List<Region> regions = new ArrayList<>(plan.placements().size());
    Set<Slab> placed = new HashSet<>();
    for (ReadPlan.Placement placement : plan.placements()) {
      if (placement.slab() == ReadPlan.Placement.NOWHERE) {
        regions.add(new Region(null, 0, 0));
      } else {
        Slab slab = slabs.get(placement.slab());
        placed.add(slab);
        regions.add(new Region(slab, placement.offset(), placement.length()));
      }
    }
    List<Slab> emptied = slabs.stream().filter(slab -> !placed.contains(slab)).toList();
    slabs.retainAll(placed);
    Slab.releaseAll(emptied);
    return new Loaded(regions, slabs, report);
  }
}
