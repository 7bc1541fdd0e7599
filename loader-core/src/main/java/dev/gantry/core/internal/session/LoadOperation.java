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

/// One load: allocate the plan's slabs, read, relocate. All or nothing.
final class LoadOperation {
  private final Transports transports;
  private final ReadPlan plan;
  private final Device device;
  private final TransferOptions options;

  static final String CHANGE = "load fewer tensors at once, or close what is loaded and not needed";

  /// Reserved host memory; null before [#allocate], and on devices.
  private HostMemory.@Nullable Reservation room;

  LoadOperation(Transports transports, ReadPlan plan, Device device, TransferOptions options) {
    this.transports = transports;
    this.plan = plan;
    this.device = device;
    this.options = options;
  }

  Loaded run() {
    LoadEvent event = new LoadEvent();
    event.begin();
    List<Slab> slabs = new ArrayList<>(plan.slabSizes().size());
    try {
      TransferReport report =
          transports.transfer(
              plan,
              device,
              () -> {
                allocate(slabs);
                return slabs;
              },
              options.withProgress(this::onProgress));
      relocate(slabs);
      Loaded loaded = keepPlaced(slabs, report);
      transports.counters().addLoad(true);
      event.done(device, plan.placements().size(), report);
      return loaded;
    } catch (RuntimeException | Error failure) {
      transports.counters().addLoad(false);
      event.failed(device, plan.placements().size(), failure);
      Slab.releaseAll(slabs, failure);
      throw failure;
    } finally {
      if (room != null) {
        room.close();
      }
    }
  }

  /// Filled memory needs no reservation: the kernel counts it.
  private void onProgress(long done, long total) {
    if (room != null) {
      room.keep(plan.allocatedBytes() - done);
    }
    options.progress().onProgress(done, total);
  }

  private void allocate(List<Slab> slabs) {
    switch (device) {
      case Device.Host _ -> {
        room = HostMemory.reserve(plan.allocatedBytes(), CHANGE);
        plan.slabSizes().forEach(size -> slabs.add(HostSlab.allocate(size)));
      }
      case Device.Cuda cuda -> {
        CudaContext context = CudaContext.of(cuda);
        long bytes =
            plan.slabSizes().stream()
                .mapToLong(size -> Math.max(size, options.slabCapacity()))
                .sum();
        Room.require(MemoryUse.on(device, bytes), device, CHANGE);
        plan.slabSizes()
            .forEach(size ->
                slabs.add(
                    DeviceSlab.allocate(context, size, Math.max(size, options.slabCapacity()))));
      }
    }
  }

  private void relocate(List<Slab> slabs) {
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
