// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.MappedSlab;
import dev.gantry.core.internal.memory.SharedDeviceSlab;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import dev.gantry.core.internal.store.RegularFile;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A file that a server keeps in memory, as its clients see it.
public final class ResidentFile implements StoredFile {
  /// Identifies a file, so that a caller can tell whether a file that it opens again is the same.
  record Identity(Path socket, String held, String name) {}

  private static final int REQUESTS_AT_ONCE = 16;

  private final Location location;
  private final Identity identity;
  private final ResidentPart part;
  private final Supplier<Device> device;
  private final List<Integer> fds;

  /// The memory file (memfd) that holds the bytes that are not on the device.
  private final RegularFile host;

  /// A mapping of the device's memory for reads by the CPU; null before the first such read.
  private @Nullable SharedDeviceSlab onDevice;

  private boolean closed;

  /// @param device supplies the weights' device; called only if some of this file's bytes are on
  ///     the device
  /// @param fds the descriptor of the memory file, and of the device's memory if some bytes are on
  ///     the device
  ResidentFile(
      Location location,
      Identity identity,
      ResidentPart part,
      Supplier<Device> device,
      List<Integer> fds) {
    this.location = location;
    this.identity = identity;
    this.part = part;
    this.device = device;
    this.fds = fds;
    this.host = new RegularFile(Libc.INSTANCE, "memory of " + location, fds.getFirst());
  }

  /// The device of the bytes that [#map] maps.
  ///
  /// @throws dev.gantry.core.DeviceUnavailableException if this process does not see the GPU
  public Device device() {
    return part.isOnDevice() ? device.get() : Device.HOST;
  }

  /// Maps the memory itself. The mapping stays valid when this file is closed and when the server
  /// has ended. The mapping must only be read: a write by the CPU would change this process's copy
  /// of the page, and a write by the GPU would fail.
  ///
  /// @throws TransferException if the memory cannot be mapped
  public FileMapping map() {
    return switch (device()) {
      case Device.Host _ ->
          new FileMapping(
              MappedSlab.readOnly(location.toString(), fds.get(0), part.hostBytes()),
              0,
              part.size(),
              part.hostPhase());
      case Device.Cuda cuda ->
          new FileMapping(
              SharedDeviceSlab.map(CudaContext.of(cuda), fds.get(1), part.deviceCapacity(), false),
              part.deviceFrom(),
              part.deviceTo(),
              -part.deviceFrom());
    };
  }

  @Override
  public long size() {
    return part.size();
  }

  @Override
  public Object identity() {
    return identity;
  }

  @Override
  public int requestsAtOnce() {
    return REQUESTS_AT_ONCE;
  }

  /// Reads on the calling thread.
  @Override
  public void read(ReadRequest request) {
    try {
      MemorySegment target = request.target();
      long from = request.offset();
      long end = from + target.byteSize();
      for (long at = from; at < end; ) {
        boolean there = at >= part.deviceFrom() && at < part.deviceTo();
        long border = there ? part.deviceTo() : at < part.deviceFrom() ? part.deviceFrom() : end;
        long next = Math.min(end, border);
        MemorySegment piece = target.asSlice(at - from, next - at);
        if (there) {
          slab().copyToHost(at - part.deviceFrom(), piece, piece.byteSize());
        } else {
          boolean _ = host.read(piece, part.hostPhase() + at, piece.byteSize(), false);
        }
        at = next;
      }
    } catch (RuntimeException | Error e) {
      request.failed(e);
      return;
    }
    request.completed();
  }

  private synchronized SharedDeviceSlab slab() {
    if (onDevice == null) {
      onDevice =
          SharedDeviceSlab.map(
              CudaContext.of((Device.Cuda) device()), fds.get(1), part.deviceCapacity(), false);
    }
    return onDevice;
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      LocalSockets.closeAll(fds);
      if (onDevice != null) {
        onDevice.release();
      }
    }
  }
}
