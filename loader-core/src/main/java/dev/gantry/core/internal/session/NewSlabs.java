// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferReport;
import dev.gantry.core.TransferReport.DeviceReport;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.plan.ReadIntoPlan;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.plan.SlabLayout;
import dev.gantry.core.internal.transport.PlannedTransfer.Task;
import dev.gantry.core.internal.transport.TransferEngine.Spread;
import dev.gantry.core.internal.transport.TransferOptions;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Slabs that a load allocates, on one device or several.
abstract sealed class NewSlabs implements Destination {
  /// The advice for a user if there is too little memory.
  static final String CHANGE = "load fewer tensors at once, or close what is loaded and not needed";

  private final List<Device> devices;
  private final List<SlabLayout> layouts;
  private final long capacity;
  private final Cancellation cancellation;
  private final List<List<Slab>> slabs = new ArrayList<>();

  /// The regions of each device, one for each part.
  private final List<List<Region>> regions = new ArrayList<>();

  /// @param layouts the layout of each device's slabs
  /// @param capacity the least memory that each slab takes on a GPU, in bytes
  private NewSlabs(
      List<Device> devices, List<SlabLayout> layouts, long capacity, TransferOptions options) {
    this.devices = List.copyOf(devices);
    this.layouts = List.copyOf(layouts);
    this.capacity = capacity;
    this.cancellation = options.cancellation();
  }

  /// Slabs for extents. Each device gets all of them.
  static final class Whole extends NewSlabs {
    private final ReadPlan plan;

    Whole(List<ExtentRequest> wanted, List<Device> devices, TransferOptions options) {
      this(Planner.plan(wanted, options.limits(), preferred(devices)), devices, options);
    }

    private Whole(ReadPlan plan, List<Device> devices, TransferOptions options) {
      super(
          devices,
          Collections.nCopies(devices.size(), plan.layout()),
          options.slabCapacity(),
          options);
      this.plan = plan;
    }

    private static int preferred(List<Device> devices) {
      return devices.stream().anyMatch(Device.Cuda.class::isInstance)
          ? ExtentRequest.KERNEL_ALIGNMENT_BYTES
          : 1;
    }

    @Override
    public List<Read> reads() {
      return plan.reads();
    }

    @Override
    public Spread spread() {
      return devices().size() == 1 ? Spread.ONE_DEVICE : Spread.EACH_DEVICE;
    }

    @Override
    public int parts() {
      return plan.placements().size();
    }

    @Override
    public List<Task> prepare() {
      List<List<Slab>> all = allocate();
      return plan.reads().stream()
          .map(read -> new Task(read, target(read, all), () -> {}))
          .toList();
    }

    private Target target(Read read, List<List<Slab>> all) {
      return all.size() == 1
          ? Target.of(all.getFirst().get(read.slab()))
          : new Target.OnEach(all.stream().map(each -> each.get(read.slab())).toList());
    }

    /// Copies extents to aligned addresses if their offsets in the file broke their alignment.
    @Override
    public TransferReport finish(TransferReport report) {
      if (!plan.relocations().isEmpty()) {
        slabs().forEach(this::relocate);
        slabs().forEach(this::releaseEmptied);
      }
      return report;
    }

    private void releaseEmptied(List<Slab> each) {
      Set<Integer> placed =
          plan.placements().stream().map(Placement::slab).collect(Collectors.toSet());
      List<Slab> emptied =
          IntStream.range(0, each.size())
              .filter(slab -> !placed.contains(slab))
              .mapToObj(each::get)
              .toList();
      each.removeAll(emptied);
      Slab.releaseAll(emptied);
    }

    private void relocate(List<Slab> each) {
      switch (each.getFirst()) {
        case CpuSlab _ ->
            plan.relocations()
                .forEach(move ->
                    place(each, move.toSlab(), move.toOffset(), move.length())
                        .copyFrom(place(each, move.fromSlab(), move.fromOffset(), move.length())));
        case DeviceSlab device -> {
          // The copies use a queue of their own, since on the default stream they would wait for
          // all other work of the device. Closing the queue waits for these copies only.
          try (CopyQueue queue = new CopyQueue(device.context())) {
            for (ReadPlan.Relocation move : plan.relocations()) {
              queue.copyOnDevice(
                  each.get(move.toSlab()).address() + move.toOffset(),
                  each.get(move.fromSlab()).address() + move.fromOffset(),
                  move.length());
            }
          }
        }
      }
    }

    private static MemorySegment place(List<Slab> each, int slab, long offset, long length) {
      return ((CpuSlab) each.get(slab)).segment().asSlice(offset, length);
    }
  }

  /// Pieces of memory that strided ranges fill. Each device has pieces of its own. Each byte is
  /// read once, even if several devices need it.
  static final class Slices extends NewSlabs {
    private final ReadIntoPlan plan;

    /// @param parts the pieces of each device
    Slices(List<List<Sliced>> parts, List<Device> devices, TransferOptions options) {
      super(devices, parts.stream().map(each -> layout(each, options)).toList(), 0, options);
      plan =
          Planner.planInto(
              parts.stream().flatMap(List::stream).map(Sliced::ranges).toList(),
              options.limits().forRows());
    }

    private static SlabLayout layout(List<Sliced> parts, TransferOptions options) {
      return SlabLayout.of(
          parts.stream().map(Sliced::bytes).toList(),
          ExtentRequest.MAX_ALIGNMENT_BYTES,
          options.limits().slabBytes());
    }

    @Override
    public List<Read> reads() {
      return plan.reads();
    }

    @Override
    public Spread spread() {
      return Spread.PARTS;
    }

    @Override
    public int parts() {
      return plan.steps().size();
    }

    @Override
    public List<Task> prepare() {
      allocate();
      List<Memory> memories = regions().stream().flatMap(List::stream).map(Region::source).toList();
      return plan.steps().stream()
          .map(step -> new Task(step.read(), GivenMemory.target(step, memories), () -> {}))
          .toList();
    }

    /// Reports the total size of a device's regions as the bytes that it got, since the ranges
    /// fill every byte of a region exactly once.
    @Override
    public TransferReport finish(TransferReport report) {
      return devices().size() == 1
          ? report
          : report.withDevices(
              IntStream.range(0, devices().size()).mapToObj(i -> device(i, report)).toList());
    }

    private DeviceReport device(int number, TransferReport report) {
      Device device = devices().get(number);
      long bytes = regions().get(number).stream().mapToLong(Region::length).sum();
      long passed =
          report.devices().stream()
              .filter(one -> one.device().equals(device))
              .mapToLong(DeviceReport::fromDevicesBytes)
              .sum();
      return new DeviceReport(device, bytes - passed, passed, "");
    }
  }

  @Override
  public final List<Device> devices() {
    return devices;
  }

  /// The slabs of each device.
  final List<List<Slab>> slabs() {
    return slabs;
  }

  final List<List<Slab>> allocate() {
    Admission.allocate(
        IntStream.range(0, devices.size())
            .mapToObj(
                i -> new Admission.Slabs(devices.get(i), layouts.get(i).slabSizes(), capacity))
            .toList(),
        slabs,
        CHANGE,
        cancellation);
    for (int i = 0; i < devices.size(); i++) {
      regions.add(Loaded.regions(layouts.get(i), slabs.get(i)));
    }
    return slabs;
  }

  /// The regions of each device, one for each part; empty before [#allocate].
  final List<List<Region>> regions() {
    return regions;
  }

  /// Hands the loaded slabs to the caller.
  ///
  /// @return one result for each device, in the devices' order, all with the report of the whole load
  final List<Loaded> loaded(TransferReport report) {
    return IntStream.range(0, devices.size())
        .mapToObj(i -> new Loaded(regions.get(i), slabs.get(i), report))
        .toList();
  }

  @Override
  public final void undo(Throwable failure) {
    slabs.forEach(each -> Slab.releaseAll(each, failure));
  }

  /// Releases the loaded slabs, instead of handing them over by [#loaded].
  final void release() {
    Cleanup.forEach(slabs, Slab::releaseAll);
  }
}
