// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.transport.CopyQueue;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Host memory to which pieces of a device's memory go for a time, pinned where the device is a GPU.
/// On the device they come back in slabs that are laid out alike, so that few copies bring them. For
/// one thread at a time.
public final class OffloadBuffer implements AutoCloseable {
  /// As far as a slab of a load grows, so that memory goes back piece by piece.
  private static final long SLAB_BYTES = 512L << 20;

  private static final long ALIGNMENT_BYTES = 512;

  /// Where a piece lies in its slab.
  private record Place(int slab, long offset, long bytes) {}

  private final Device device;
  private final List<Long> sizes;
  private final List<Place> places;
  private final List<CpuSlab> slabs;

  private OffloadBuffer(Device device, List<Long> sizes, List<Place> places, List<CpuSlab> slabs) {
    this.device = device;
    this.sizes = List.copyOf(sizes);
    this.places = places;
    this.slabs = slabs;
  }

  /// Takes the host memory, and pins it.
  ///
  /// @param sizes of the pieces in bytes, 1 or more each
  /// @throws dev.gantry.core.TransferException if the host has not that much
  public static OffloadBuffer prepare(Device device, List<Long> sizes) {
    List<Place> places = new ArrayList<>();
    List<Long> slabBytes = new ArrayList<>();
    long end = 0;
    for (long bytes : sizes) {
      long start = Math.ceilDiv(end, ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
      if (slabBytes.isEmpty() || Math.addExact(start, bytes) > SLAB_BYTES) {
        slabBytes.add(0L);
        start = 0;
      }
      end = start + bytes;
      places.add(new Place(slabBytes.size() - 1, start, bytes));
      slabBytes.set(slabBytes.size() - 1, end);
    }
    List<CpuSlab> slabs = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          long total = slabBytes.stream().reduce(0L, Math::addExact);
          try (HostMemory.Reservation room = HostMemory.reserve(total)) {
            for (long bytes : slabBytes) {
              slabs.add(
                  switch (device) {
                    case Device.Host _ -> room.allocate(bytes);
                    case Device.Cuda cuda -> room.pin(CudaContext.of(cuda), bytes);
                  });
            }
          }
          return new OffloadBuffer(device, sizes, places, slabs);
        },
        () -> Slab.releaseAll(slabs));
  }

  /// Where the bytes are at home.
  public Device device() {
    return device;
  }

  /// Whether this has room for exactly these pieces.
  public boolean suits(Device other, List<Long> otherSizes) {
    return device.equals(other) && sizes.equals(otherSizes);
  }

  /// Copies the pieces to the host, after all work that was queued on the device.
  ///
  /// @param addresses of the pieces, in the order of their sizes
  /// @throws dev.gantry.core.TransferException if the device fails
  public void save(List<Long> addresses) {
    if (addresses.size() != places.size()) {
      throw new MisuseException(
          "addresses must be " + places.size() + " (were " + addresses.size() + ")");
    }
    switch (device) {
      case Device.Host _ -> {
        for (int i = 0; i < places.size(); i++) {
          hostBytes(i)
              .copyFrom(
                  MemorySegment.ofAddress(addresses.get(i)).reinterpret(places.get(i).bytes()));
        }
      }
      case Device.Cuda cuda -> {
        CudaContext context = CudaContext.of(cuda);
        context.synchronize();
        try (CopyQueue queue = new CopyQueue(context)) {
          for (int i = 0; i < places.size(); i++) {
            queue.copyToHost(hostBytes(i).address(), addresses.get(i), places.get(i).bytes());
          }
          queue.drain();
        }
      }
    }
  }

  private MemorySegment hostBytes(int piece) {
    Place place = places.get(piece);
    return slabs.get(place.slab()).segment().asSlice(place.offset(), place.bytes());
  }

  /// Copies the pieces to new memory of the device. The caller closes the result.
  ///
  /// @throws dev.gantry.core.TransferException if the device fails or has no room
  public Loaded restore() {
    List<Slab> there = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          copyTo(there);
          List<Region> regions =
              places.stream()
                  .map(place -> new Region(there.get(place.slab()), place.offset(), place.bytes()))
                  .toList();
          return new Loaded(regions, there, TransferReport.NOTHING);
        },
        () -> Slab.releaseAll(there));
  }

  private void copyTo(List<Slab> there) {
    switch (device) {
      case Device.Host _ -> {
        try (HostMemory.Reservation room = HostMemory.reserve(bytes())) {
          for (CpuSlab slab : slabs) {
            HostSlab copy = room.allocate(slab.size());
            there.add(copy);
            copy.segment().copyFrom(slab.segment());
          }
        }
      }
      case Device.Cuda cuda -> {
        CudaContext context = CudaContext.of(cuda);
        // The memory stays until the queue is closed, which waits for its copies.
        try (CopyQueue queue = new CopyQueue(context)) {
          for (CpuSlab slab : slabs) {
            DeviceSlab copy = DeviceSlab.allocate(context, slab.size());
            there.add(copy);
            queue.copyToDevice(copy.address(), slab.address(), slab.size());
          }
          queue.drain();
        }
      }
    }
  }

  /// The host memory in bytes.
  public long bytes() {
    return slabs.stream().mapToLong(Slab::size).sum();
  }

  /// Frees the host memory. Idempotent.
  @Override
  public void close() {
    List<CpuSlab> all = List.copyOf(slabs);
    slabs.clear();
    Slab.releaseAll(all);
  }
}
