// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.SlabLayout;
import dev.gantry.core.internal.transport.TransferOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// The part of a load whose bytes the CPU makes: allocates host memory, has the writers fill it,
/// and copies it to the device. Several fills share a slab. If a step fails, nothing stays
/// allocated.
final class FillOperation {
  private static final int ALIGNMENT_BYTES = 64;

  private final List<HostFill> fills;
  private final Device device;
  private final TransferOptions options;
  private final long total;
  private long done;

  FillOperation(List<HostFill> fills, Device device, TransferOptions options) {
    this.fills = fills;
    this.device = device;
    this.options = options;
    this.total = fills.stream().mapToLong(HostFill::bytes).reduce(0, Math::addExact);
  }

  Loaded run() {
    long start = System.nanoTime();
    List<Slab> slabs = new ArrayList<>();
    SlabLayout layout = layout(fills.stream().map(HostFill::bytes).toList(), options.limits());
    MemoryUse most = most(layout, device);
    try (Admission admission = Admission.of(most, device, NewSlabs.CHANGE)) {
      int next = 0;
      for (long size : layout.slabSizes()) {
        HostSlab host = admission.allocate(size);
        slabs.add(host);
        for (; next < fills.size() && layout.placements().get(next).slab() < slabs.size(); next++) {
          write(fills.get(next), host, layout.placements().get(next));
        }
        if (device instanceof Device.Cuda cuda) {
          moveLast(slabs, host, cuda);
        }
      }
      Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
      return new Loaded(
          Loaded.regions(layout, slabs),
          slabs,
          new TransferReport(
              Map.of(Transport.HOST, total), 0, 0, fills.size(), 1, List.of(), elapsed));
    } catch (RuntimeException | Error failure) {
      Slab.releaseAll(slabs, failure);
      throw failure;
    }
  }

  /// Assigns the fills to slabs, aligned for elements of any dtype.
  private static SlabLayout layout(List<Long> bytes, PlanLimits limits) {
    return SlabLayout.of(bytes, ALIGNMENT_BYTES, limits.slabBytes());
  }

  /// The most memory that the fills take at once. For a device, host memory for the largest slab
  /// is added, since one slab at a time is filled on the host and then copied.
  private static MemoryUse most(SlabLayout layout, Device device) {
    MemoryUse all = MemoryUse.on(device, layout.bytes());
    long largest = layout.slabSizes().stream().mapToLong(Long::longValue).max().orElse(0);
    return device instanceof Device.Cuda ? all.plus(MemoryUse.on(Device.HOST, largest)) : all;
  }

  private void write(HostFill fill, HostSlab host, Placement place) {
    if (options.cancellation().isCancelled()) {
      throw new TransferException(
          "load", done + " of " + total + " bytes were made", new Failure.Cancelled());
    }
    fill.writer().accept(host.segment().asSlice(place.offset(), fill.bytes()));
    done += fill.bytes();
    options.progress().onProgress(done, total);
  }

  private static void moveLast(List<Slab> slabs, HostSlab host, Device.Cuda cuda) {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(cuda), host.size());
    slabs.add(slab);
    slab.copyFromHost(0, host.segment());
    slabs.remove(host);
    host.release();
  }
}
