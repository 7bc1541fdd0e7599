// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.SharedDeviceSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.CudaSharing;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import dev.gantry.core.internal.plan.ExtentRequest;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// The memory of one version of a server's weights. The kernel and the driver count the processes
/// that map it, so closing this image frees the memory only when no client maps it. Fill the
/// memory of [#targets], then call [#seal]. Not thread-safe.
public final class ResidentImage implements AutoCloseable {
  /// A range of a file, and the memory to read it into.
  ///
  /// @param source the file's index in the list of sources
  public record Range(int source, long from, Memory memory) {}

  private record Mapping(long address, long size) {}

  private final ResidentCatalogue catalogue;
  private final Device device;
  private final List<Integer> fds = new ArrayList<>();
  private final List<Mapping> mappings = new ArrayList<>();
  private final List<SharedDeviceSlab> slabs = new ArrayList<>();
  private final List<Range> targets = new ArrayList<>();

  private ResidentImage(ResidentCatalogue catalogue, Device device) {
    this.catalogue = catalogue;
    this.device = device;
  }

  /// Allocates the memory of all sources.
  ///
  /// @param entry as in [ResidentCatalogue]
  /// @throws TransferException if there is too little memory, or the kernel or the driver cannot
  ///     allocate memory that processes share
  public static ResidentImage allocate(
      int version, String entry, List<ResidentSource> sources, Device device) {
    List<ResidentPart> parts = sources.stream().map(source -> part(source, device)).toList();
    ResidentImage image =
        new ResidentImage(new ResidentCatalogue(version, gpu(device), entry, parts), device);
    long host =
        parts.stream()
            .mapToLong(part ->
                part.hostBytes() - (part.isOnDevice() ? part.deviceTo() - part.deviceFrom() : 0))
            .sum();
    return Cleanup.orUndo(
        () -> {
          try (Admission admission = Admission.ofHost(host)) {
            for (int i = 0; i < parts.size(); i++) {
              image.add(i, parts.get(i), admission);
            }
            return image;
          }
        },
        image::close);
  }

  private static String gpu(Device device) {
    return switch (device) {
      case Device.Host _ -> "";
      case Device.Cuda cuda -> CudaSharing.uuid(CudaContext.of(cuda).device().ordinal());
    };
  }

  private static ResidentPart part(ResidentSource source, Device device) {
    long tensors = source.tensorsTo() - source.tensorsFrom();
    String name = source.file().fileName();
    return switch (device) {
      case Device.Cuda cuda when tensors > 0 -> {
        long unit = granularity(cuda);
        yield new ResidentPart(
            name,
            source.size(),
            0,
            source.tensorsFrom(),
            source.tensorsTo(),
            Math.ceilDiv(tensors, unit) * unit);
      }
      case Device.Cuda _ -> new ResidentPart(name, source.size(), 0, 0, 0, 0);
      case Device.Host _ ->
          new ResidentPart(
              name,
              source.size(),
              Math.floorMod(-source.tensorsFrom(), ExtentRequest.MAX_ALIGNMENT_BYTES),
              0,
              0,
              0);
    };
  }

  private static long granularity(Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    try (var _ = context.enter()) {
      return CudaSharing.granularity(device.ordinal());
    } catch (TransferException e) {
      throw unable(e);
    }
  }

  private static TransferException unable(TransferException refused) {
    return new TransferException(
        refused.operation(),
        "memory of a GPU that processes share; this driver or container has none (see `gantry"
            + " doctor`)",
        refused.failure());
  }

  private void add(int source, ResidentPart part, Admission admission) {
    int made = LocalSockets.memoryFile("gantry-resident");
    int fd = Errno.require(made, "memfd_create", part.name());
    fds.add(fd);
    if (part.hostBytes() > 0) {
      Errno.check(Libc.INSTANCE.ftruncate(fd, part.hostBytes()), "ftruncate", part.name());
      MemorySegment host = map(fd, part).asSlice(part.hostPhase());
      if (part.isOnDevice()) {
        addHost(source, host, 0, part.deviceFrom(), admission);
        addHost(source, host, part.deviceTo(), part.size(), admission);
      } else {
        addHost(source, host, 0, part.size(), admission);
      }
    }
    if (part.isOnDevice()) {
      CudaContext context = CudaContext.of((Device.Cuda) device);
      fds.add(create(context, part.deviceCapacity()));
      SharedDeviceSlab slab =
          SharedDeviceSlab.map(context, fds.getLast(), part.deviceCapacity(), true);
      slabs.add(slab);
      targets.add(
          new Range(
              source,
              part.deviceFrom(),
              new Memory.OnDevice(
                  context.device(), slab.address(), part.deviceTo() - part.deviceFrom())));
    }
  }

  private static int create(CudaContext context, long bytes) {
    try (var _ = context.enter()) {
      return CudaSharing.create(context.device().ordinal(), bytes);
    } catch (TransferException e) {
      boolean full = e.failure() instanceof Failure.Cuda cuda && cuda.code() == 2;
      throw full ? e : unable(e);
    }
  }

  private void addHost(int source, MemorySegment host, long from, long to, Admission admission) {
    if (to > from) {
      MemorySegment range = host.asSlice(from, to - from);
      targets.add(new Range(source, from, new Memory.OnHost(range)));
      admission.mapped(page(range), to - from);
    }
  }

  private static long page(MemorySegment range) {
    return range.address() & -Libc.INSTANCE.pageBytes();
  }

  private MemorySegment map(int fd, ResidentPart part) {
    int protection = Libc.PROT_READ | Libc.PROT_WRITE;
    Mapping mapping =
        Cleanup.orUndo(
            () ->
                Errno.require(
                    Libc.INSTANCE.mmap(part.hostBytes(), protection, Libc.MAP_SHARED, fd, 0),
                    "mmap",
                    part.name()),
            address -> new Mapping(address, part.hostBytes()),
            address -> Libc.INSTANCE.munmap(address, part.hostBytes()));
    mappings.add(mapping);
    return MemorySegment.ofAddress(mapping.address()).reinterpret(part.hostBytes());
  }

  /// Returns the ranges to read, each with the memory to read it into.
  public List<Range> targets() {
    return List.copyOf(targets);
  }

  /// Seals the memory files: from now on no process can change them.
  public void seal() {
    unmap();
    int at = 0;
    for (ResidentPart part : catalogue.parts()) {
      Errno.check(LocalSockets.seal(fds.get(at)), "fcntl(F_ADD_SEALS)", part.name());
      at += part.descriptors();
    }
  }

  private void unmap() {
    for (Range target : targets) {
      if (target.memory() instanceof Memory.OnHost(MemorySegment range)) {
        HostMemory.unmappedOnly(page(range));
      }
    }
    mappings.forEach(mapping -> {
      int _ = Libc.INSTANCE.munmap(mapping.address(), mapping.size());
    });
    mappings.clear();
    Slab.releaseAll(slabs);
    slabs.clear();
    targets.clear();
  }

  public ResidentCatalogue catalogue() {
    return catalogue;
  }

  List<Integer> fds() {
    return fds;
  }

  /// The size of this image's memory in bytes.
  public long bytes() {
    return catalogue.parts().stream()
        .mapToLong(part ->
            part.isOnDevice()
                ? part.size() - (part.deviceTo() - part.deviceFrom()) + part.deviceCapacity()
                : part.hostBytes())
        .sum();
  }

  /// Closes this process's descriptors and mappings of the memory. A second call does nothing.
  @Override
  public void close() {
    unmap();
    LocalSockets.closeAll(fds);
    fds.clear();
  }
}
