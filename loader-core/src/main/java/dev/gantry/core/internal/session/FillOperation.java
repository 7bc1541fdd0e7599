// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Room;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// The part of a load that the CPU makes: allocate host memory, have it written, copy it to the
/// device. Neighbours share a slab. All or nothing.
final class FillOperation {
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
    List<Region> regions = new ArrayList<>(fills.size());
    List<Long> bytes = fills.stream().map(HostFill::bytes).toList();
    MemoryUse most = memory(bytes, device, options.limits()).most();
    try (HostMemory.Reservation room = Room.reserve(most, device, LoadOperation.CHANGE)) {
      for (int first = 0; first < fills.size(); ) {
        int end = endOfSlab(bytes, first, options.limits());
        fill(fills.subList(first, end), room, slabs, regions);
        first = end;
      }
    } catch (RuntimeException | Error failure) {
      Slab.releaseAll(slabs, failure);
      throw failure;
    }
    Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
    return new Loaded(
        regions,
        slabs,
        new TransferReport(Map.of(Transport.HOST, total), 0, 0, fills.size(), List.of(), elapsed));
  }

  private static int endOfSlab(List<Long> bytes, int first, PlanLimits limits) {
    long room = limits.slabBytes() - padded(bytes.get(first));
    int end = first + 1;
    while (end < bytes.size() && room >= padded(bytes.get(end))) {
      room -= padded(bytes.get(end));
      end++;
    }
    return end;
  }

  /// What it takes to fill so many bytes each.
  static LoadMemory memory(List<Long> bytes, Device device, PlanLimits limits) {
    List<Long> slabs = new ArrayList<>();
    List<Integer> slabOf = new ArrayList<>(bytes.size());
    long all = 0;
    MemoryUse most = MemoryUse.NOTHING;
    for (int first = 0; first < bytes.size(); ) {
      int end = endOfSlab(bytes, first, limits);
      List<Long> some = bytes.subList(first, end);
      long size = some.stream().mapToLong(FillOperation::padded).sum();
      some.forEach(each -> slabOf.add(each == 0 ? LoadMemory.NOWHERE : slabs.size()));
      slabs.add(size);
      all += size;
      MemoryUse now = MemoryUse.on(device, all);
      most =
          most.max(device instanceof Device.Cuda ? now.plus(MemoryUse.on(Device.HOST, size)) : now);
      first = end;
    }
    return new LoadMemory(device, most, slabs, slabOf);
  }

  /// So that the next one's elements are aligned, whatever they are.
  private static long padded(long bytes) {
    return (bytes + Long.BYTES * 8 - 1) & -(Long.BYTES * 8);
  }

  private void fill(
      List<HostFill> some, HostMemory.Reservation room, List<Slab> slabs, List<Region> regions) {
    long size = some.stream().mapToLong(fill -> padded(fill.bytes())).sum();
    if (size == 0) {
      some.forEach(_ -> regions.add(new Region(null, 0, 0)));
      return;
    }
    HostSlab host = room.allocate(size);
    slabs.add(host);
    write(some, host);
    Slab slab = host;
    if (device instanceof Device.Cuda cuda) {
      slab = onDevice(host, cuda, slabs);
      slabs.remove(host);
      host.release();
    }
    long offset = 0;
    for (HostFill fill : some) {
      regions.add(
          fill.bytes() == 0 ? new Region(null, 0, 0) : new Region(slab, offset, fill.bytes()));
      offset += padded(fill.bytes());
    }
  }

  private void write(List<HostFill> some, HostSlab host) {
    long offset = 0;
    for (HostFill fill : some) {
      if (options.cancellation().isCancelled()) {
        throw new TransferException(
            "load", done + " of " + total + " bytes were made", new Failure.Cancelled());
      }
      fill.writer().accept(host.segment().asSlice(offset, fill.bytes()));
      offset += padded(fill.bytes());
      done += fill.bytes();
      options.progress().onProgress(done, total);
    }
  }

  private static DeviceSlab onDevice(HostSlab host, Device.Cuda cuda, List<Slab> slabs) {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(cuda), host.size());
    slabs.add(slab);
    slab.copyFromHost(0, host.segment());
    return slab;
  }
}
