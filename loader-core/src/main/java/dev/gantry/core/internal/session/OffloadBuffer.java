// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.SlabLayout;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Host memory to which pieces of a device's memory are moved for a time; pinned if the device is
/// a GPU. When they return to the device, they get slabs of the same layout as here, so that one
/// copy for each slab suffices. Only one thread may use an instance at a time.
public final class OffloadBuffer implements AutoCloseable {
  /// The most bytes of a slab, as in a load. With several slabs, memory can be freed slab by slab.
  private static final long SLAB_BYTES = 512L << 20;

  private static final int ALIGNMENT_BYTES = 512;

  private final Device device;
  private final List<Long> sizes;
  private final SlabLayout layout;
  private final List<CpuSlab> slabs;

  private OffloadBuffer(Device device, List<Long> sizes, SlabLayout layout, List<CpuSlab> slabs) {
    this.device = device;
    this.sizes = List.copyOf(sizes);
    this.layout = layout;
    this.slabs = slabs;
  }

  /// Allocates the host memory, and pins it if the device is a GPU.
  ///
  /// @param sizes the pieces' sizes in bytes, 1 or more each
  /// @throws dev.gantry.core.TransferException if the host has too little memory
  public static OffloadBuffer prepare(Device device, List<Long> sizes) {
    SlabLayout layout = SlabLayout.of(sizes, ALIGNMENT_BYTES, SLAB_BYTES);
    List<CpuSlab> slabs = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          try (Admission admission = Admission.ofHost(layout.bytes())) {
            for (long bytes : layout.slabSizes()) {
              slabs.add(
                  switch (device) {
                    case Device.Host _ -> admission.allocate(bytes);
                    case Device.Cuda cuda -> admission.pin(CudaContext.of(cuda), bytes);
                  });
            }
          }
          return new OffloadBuffer(device, sizes, layout, slabs);
        },
        () -> Slab.releaseAll(slabs));
  }

  /// The device that the bytes came from.
  public Device device() {
    return device;
  }

  /// Whether the buffer was made for pieces of exactly these sizes on this device.
  public boolean suits(Device other, List<Long> otherSizes) {
    return device.equals(other) && sizes.equals(otherSizes);
  }

  /// Copies the pieces to the host, after all work that was queued on the device.
  ///
  /// @param addresses the pieces' addresses, in the order of their sizes
  /// @throws dev.gantry.core.TransferException if the device fails
  public void save(List<Long> addresses) {
    if (addresses.size() != sizes.size()) {
      throw new MisuseException(
          "addresses must be " + sizes.size() + " (were " + addresses.size() + ")");
    }
    switch (device) {
      case Device.Host _ -> {
        for (int i = 0; i < sizes.size(); i++) {
          hostBytes(i)
              .copyFrom(MemorySegment.ofAddress(addresses.get(i)).reinterpret(sizes.get(i)));
        }
      }
      case Device.Cuda cuda -> {
        CudaContext context = CudaContext.of(cuda);
        context.synchronize();
        // Closing the queue waits for its copies.
        try (CopyQueue queue = new CopyQueue(context)) {
          for (int i = 0; i < sizes.size(); i++) {
            queue.copyToHost(hostBytes(i).address(), addresses.get(i), sizes.get(i));
          }
        }
      }
    }
  }

  private MemorySegment hostBytes(int piece) {
    Placement place = layout.placements().get(piece);
    return slabs.get(place.slab()).segment().asSlice(place.offset(), place.length());
  }

  /// Copies the pieces to new memory of the device. The caller closes the result. The buffer keeps
  /// its content.
  ///
  /// @throws dev.gantry.core.TransferException if the device fails or has too little memory
  public Loaded restore() {
    List<Slab> there = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          copyTo(there);
          return new Loaded(Loaded.regions(layout, there), there, TransferReport.NOTHING);
        },
        () -> Slab.releaseAll(there));
  }

  private void copyTo(List<Slab> there) {
    switch (device) {
      case Device.Host _ -> {
        try (Admission admission = Admission.ofHost(bytes())) {
          for (CpuSlab slab : slabs) {
            HostSlab copy = admission.allocate(slab.size());
            there.add(copy);
            copy.segment().copyFrom(slab.segment());
          }
        }
      }
      case Device.Cuda cuda -> {
        CudaContext context = CudaContext.of(cuda);
        // Closing the queue waits for its copies, so the memory stays until they are done.
        try (CopyQueue queue = new CopyQueue(context)) {
          for (CpuSlab slab : slabs) {
            DeviceSlab copy = DeviceSlab.allocate(context, slab.size());
            there.add(copy);
            queue.copyToDevice(copy.address(), slab.address(), slab.size());
          }
        }
      }
    }
  }

  /// The size of the host memory in bytes.
  public long bytes() {
    return slabs.stream().mapToLong(Slab::size).sum();
  }

  /// Frees the host memory. Closing twice does nothing.
  @Override
  public void close() {
    List<CpuSlab> all = List.copyOf(slabs);
    slabs.clear();
    Slab.releaseAll(all);
  }
}
