// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.cufile.RegistrationCache;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/// `gds` and `compat`: libcufile moves the bytes of one file between the file and device memory, directly or through
/// the CPU.
///
/// Owns the registrations of the file with cuFile, and the registrations of memory that is not a
/// slab. Thread-safe, except that [#close] may run only when no transfer runs.
public final class CuFileTransport implements AutoCloseable {
  private final CuFileSession.Opened driver;
  private final CudaContext context;
  private final CuFileHandle handle;
  private final @Nullable CuFileHandle direct;
  private final RegistrationCache.Load load;
  private final AtomicBoolean closed = new AtomicBoolean();

  /// Made with the transport, so that closing it needs no heap.
  private final List<Runnable> closing = new ArrayList<>();

  private volatile String bounced = "";

  /// @param handle for [Transport#GDS], the registration of the direct descriptor; for
  ///     [Transport#COMPAT], the registration of the buffered descriptor
  /// @param direct for [Transport#COMPAT], the registration of the direct descriptor; null if the
  ///     file has no direct descriptor
  CuFileTransport(
      CuFileSession.Opened driver,
      CudaContext context,
      CuFileHandle handle,
      @Nullable CuFileHandle direct,
      Runnable whenClosed) {
    this.driver = driver;
    this.context = context;
    this.handle = handle;
    this.direct = direct;
    this.load = driver.registrations().begin();
    closing.add(load::close);
    closing.add(handle::close);
    if (direct != null) {
      closing.add(direct::close);
    }
    // This comes last, since the driver may be closed from then on.
    closing.add(whenClosed);
  }

  /// Either [Transport#GDS] or [Transport#COMPAT].
  public Transport transport() {
    return driver.kind();
  }

  /// The reason why some memory was not registered, so that cuFile filled it through a bounce
  /// buffer; empty if all memory was registered.
  String bounced() {
    return bounced;
  }

  /// Whether [#write] accepts several pieces of memory.
  public boolean writesTogether() {
    return driver.cuFile().hasVectors();
  }

  /// Writes pieces of one device's memory to consecutive ranges of the file, past the page cache
  /// if the file has a direct descriptor. Work that was queued on the device for that memory must
  /// be done. If cuFile writes fewer bytes than requested, the rest is requested again.
  ///
  /// @param file the file's name in messages
  /// @param pieces up to [CuFile#MAX_PIECES]; one only if [#writesTogether] says no
  /// @return whether the bytes went past the page cache
  public boolean write(Path file, List<Memory.OnDevice> pieces, long fileOffset) {
    CuFileHandle to = direct != null ? direct : handle;
    List<MemorySegment> all =
        pieces.stream()
            .map(piece -> MemorySegment.ofAddress(piece.address()).reinterpret(piece.length()))
            .toList();
    long bytes = all.stream().mapToLong(MemorySegment::byteSize).sum();
    long done = 0;
    try (var _ = CudaContext.of(pieces.getFirst().device()).enter()) {
      while (done < bytes) {
        long count =
            all.size() == 1
                ? driver.cuFile().write(to, all.getFirst(), bytes - done, fileOffset + done, done)
                : driver
                    .cuFile()
                    .writeTogether(to, CuFileReads.behind(all, done), fileOffset + done);
        if (count <= 0) {
          throw new TransferException(
              "cuFileWrite",
              file + " offset " + (fileOffset + done),
              new Failure.NothingWritten(bytes - done));
        }
        done += count;
      }
    }
    return direct != null || transport() == Transport.GDS;
  }

  /// Reads the first block of the file and drops it.
  ///
  /// @param bytes the length of the file
  /// @throws TransferException if cuFile does not read it
  void tryRead(Path file, long bytes) {
    DeviceSlab slab = DeviceSlab.allocate(context, PlanLimits.BLOCK_BYTES);
    try (var _ = context.enter()) {
      long wanted = Math.min(bytes, PlanLimits.BLOCK_BYTES);
      long count = driver.cuFile().read(handle, slab.deviceSegment(), slab.size(), 0, 0);
      if (count < wanted) {
        throw new TransferException(
            "cuFileRead", file + " offset " + count, new Failure.EndOfFile(wanted - count));
      }
    } finally {
      slab.release();
    }
  }

  /// Reads into device memory. The bytes have arrived when this returns.
  ///
  /// @param wantDirect whether to go past the page cache; `gds` always does
  /// @param passed is called with the number of bytes that a device gets from another device
  /// @return whether the bytes went past the page cache
  boolean read(
      SourceFile file,
      Read read,
      Target target,
      boolean wantDirect,
      BiConsumer<Device, Long> passed) {
    CuFileHandle handle = wantDirect && direct != null ? direct : this.handle;
    switch (target) {
      case Target.InSlab in -> {
        if (in.free() != null) {
          // cuFile's reads wait for no stream, so the host waits until the memory is free.
          try (var _ = context.enter()) {
            context.driver().synchronize(in.free());
          }
        }
        DeviceSlab slab = registered(in);
        new CuFileReads(driver.cuFile(), file, handle)
            .read(
                slab.context(),
                slab.deviceSegment(),
                read.slabOffset(),
                read.fileOffset(),
                read.length(),
                read.required());
      }
      case Target.OnEach _ -> throw new IllegalStateException("a reader has a device of its own");
      case Target.Scattered(var pieces) -> {
        try (PlacedRows rows =
            new PlacedRows(new CuFileReads(driver.cuFile(), file, handle), this::use)) {
          rows.read(pieces, read.fileOffset()).forEach(passed);
        }
      }
    }
    return handle == direct || transport() == Transport.GDS;
  }

  /// Whether [PlacedRows] serves these pieces, and all of their memory can be registered. If some
  /// memory cannot be registered, the file's report gets the reason.
  boolean suits(Target.Scattered target) {
    if (!PlacedRows.suit(target.pieces())) {
      return false;
    }
    for (Target.Piece piece : target.pieces()) {
      try (RegistrationCache.Use use = use(piece)) {
        if (!use.refusal().isEmpty()) {
          return false;
        }
      }
    }
    return true;
  }

  private RegistrationCache.Use use(Target.Piece piece) {
    Memory.OnDevice memory = PlacedRows.onDevice(piece.memory());
    RegistrationCache.Use use = load.use(memory.device(), memory.address(), memory.length());
    noteRefusal(use.refusal());
    return use;
  }

  private void noteRefusal(String refusal) {
    if (!refusal.isEmpty()) {
      bounced = refusal;
    }
  }

  private DeviceSlab registered(Target.InSlab target) {
    if (!(target.slab() instanceof DeviceSlab slab)) {
      throw new MisuseException(
          "cuFile cannot fill this memory: it is not a slab of a CUDA device");
    }
    if (transport() == Transport.GDS) {
      // The slab stays registered after the use is closed.
      try (RegistrationCache.Use use = driver.registrations().use(slab)) {
        noteRefusal(use.refusal());
      }
    }
    return slab;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      Cleanup.runAll(closing);
    }
  }
}
