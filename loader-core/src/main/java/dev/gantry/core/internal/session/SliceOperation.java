// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferReport;
import dev.gantry.core.TransferReport.DeviceReport;
import dev.gantry.core.internal.events.LoadEvent;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Room;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.StripPlan;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.internal.transport.Transports;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/// One load of parts that strips fill, of which each device has its own: each byte is read once, also
/// where several devices want it. All or nothing.
final class SliceOperation {
  private final Transports transports;
  private final List<Device> devices;

  /// Of each device.
  private final List<Packing> packings;

  private final StripPlan plan;
  private final TransferOptions options;

  /// Of each device.
  private final List<List<Slab>> slabs = new ArrayList<>();

  /// Of each part, those of the first device first.
  private final List<Region> regions = new ArrayList<>();

  /// Which memory parts get: neighbours share a slab.
  ///
  /// @param bytes of each part
  /// @param slabOf of each part; [LoadMemory#NOWHERE] for one without bytes
  record Packing(List<Long> bytes, List<Long> slabs, List<Integer> slabOf, List<Long> offsets) {
    static Packing of(List<Long> bytes, PlanLimits limits) {
      List<Long> slabs = new ArrayList<>();
      List<Integer> slabOf = new ArrayList<>();
      List<Long> offsets = new ArrayList<>();
      for (long each : bytes) {
        long padded = PlanLimits.align(each, Wanted.MOST_ALIGNMENT_BYTES);
        if (each > 0 && (slabs.isEmpty() || slabs.getLast() + padded > limits.slabBytes())) {
          slabs.add(0L);
        }
        slabOf.add(each == 0 ? LoadMemory.NOWHERE : slabs.size() - 1);
        offsets.add(each == 0 ? 0 : slabs.getLast());
        if (each > 0) {
          slabs.add(slabs.removeLast() + padded);
        }
      }
      return new Packing(bytes, slabs, slabOf, offsets);
    }

    long allocatedBytes() {
      return slabs.stream().mapToLong(Long::longValue).sum();
    }
  }

  /// @param parts of each device
  SliceOperation(
      Transports transports,
      List<Device> devices,
      List<List<Sliced>> parts,
      TransferOptions options) {
    this.transports = transports;
    this.devices = devices;
    this.options = options;
    this.packings =
        parts.stream()
            .map(each -> Packing.of(each.stream().map(Sliced::bytes).toList(), options.limits()))
            .toList();
    this.plan = plan(parts, options);
  }

  private static StripPlan plan(List<List<Sliced>> parts, TransferOptions options) {
    return StripPlan.of(
        parts.stream().flatMap(List::stream).map(Sliced::strips).toList(), options.limits());
  }

  static LoadMemory memory(
      Transports transports, List<Sliced> parts, Device device, TransferOptions options) {
    Packing packing = Packing.of(parts.stream().map(Sliced::bytes).toList(), options.limits());
    MemoryUse readers = transports.readersUse(plan(List.of(parts), options), device, options);
    return new LoadMemory(
        device,
        MemoryUse.on(device, packing.allocatedBytes()).plus(readers),
        packing.slabs(),
        packing.slabOf());
  }

  /// @return one for each device, in their order, all with the report of the whole load
  List<Loaded> run() {
    LoadEvent event = new LoadEvent();
    event.begin();
    try {
      TransferReport report = transports.transferStrips(plan, devices, this::targets, options);
      TransferReport told = devices.size() > 1 ? report.withDevices(each()) : report;
      List<Loaded> loaded = new ArrayList<>();
      int first = 0;
      for (int i = 0; i < devices.size(); i++) {
        int end = first + packings.get(i).bytes().size();
        loaded.add(new Loaded(regions.subList(first, end), slabs.get(i), told));
        first = end;
      }
      transports.counters().addLoad(true);
      event.done(devices.getFirst(), plan.steps().size(), report);
      return loaded;
    } catch (RuntimeException | Error failure) {
      transports.counters().addLoad(false);
      event.failed(devices.getFirst(), plan.steps().size(), failure);
      slabs.forEach(each -> Slab.releaseAll(each, failure));
      throw failure;
    }
  }

  /// Strips fill all of each part, none twice.
  private List<DeviceReport> each() {
    return IntStream.range(0, devices.size())
        .mapToObj(i -> {
          long bytes = packings.get(i).bytes().stream().mapToLong(Long::longValue).sum();
          return new DeviceReport(devices.get(i), bytes, 0, "");
        })
        .toList();
  }

  private Slab slab(StripPlan.Piece piece) {
    return Objects.requireNonNull(regions.get(piece.part()).slab());
  }

  private List<Target> targets() {
    allocate();
    return plan.steps().stream().<Target>map(this::target).toList();
  }

  private Target.Strips target(StripPlan.Step step) {
    return new Target.Strips(
        step.pieces().stream()
            .map(piece ->
                new Target.Rows(
                    piece.offset(),
                    piece.bytes(),
                    piece.rows(),
                    piece.pitch(),
                    slab(piece),
                    regions.get(piece.part()).offset() + piece.target(),
                    piece.targetPitch()))
            .toList());
  }

  private void allocate() {
    Room.allocate(
        IntStream.range(0, devices.size())
            .mapToObj(i -> new Room.Slabs(devices.get(i), packings.get(i).slabs(), 0))
            .toList(),
        slabs,
        LoadOperation.CHANGE);
    for (int i = 0; i < devices.size(); i++) {
      addRegions(packings.get(i), slabs.get(i));
    }
  }

  private void addRegions(Packing packing, List<Slab> each) {
    for (int part = 0; part < packing.slabOf().size(); part++) {
      int slab = packing.slabOf().get(part);
      regions.add(
          slab == LoadMemory.NOWHERE
              ? new Region(null, 0, 0)
              : new Region(each.get(slab), packing.offsets().get(part), packing.bytes().get(part)));
    }
  }
}
