// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.LoadEvent;
import dev.gantry.core.internal.memory.CudaContext;
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

/// One load onto one device or several: allocate the plan's slabs on each, read, relocate. All or
/// nothing.
final class LoadOperation {
  private final Transports transports;
  private final ReadPlan plan;
  private final List<Device> devices;
  private final TransferOptions options;

  static final String CHANGE = "load fewer tensors at once, or close what is loaded and not needed";

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
      TransferReport report = transfer();
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
    }
  }

  private TransferReport transfer() {
    return devices.size() == 1
        ? transports.transfer(plan, devices.getFirst(), () -> allocate().getFirst(), options)
        : transports.transferToEach(plan, devices, this::allocate, options);
  }

  private List<List<Slab>> allocate() {
    Room.allocate(
        devices.stream()
            .map(device -> new Room.Slabs(device, plan.slabSizes(), options.slabCapacity()))
            .toList(),
        slabs,
        CHANGE);
    return slabs;
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
