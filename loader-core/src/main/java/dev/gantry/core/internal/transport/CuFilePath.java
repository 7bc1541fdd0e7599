package dev.gantry.core.internal.transport;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// `gds` and `compat`: libcufile moves one file's bytes straight into device memory, by itself past
/// the CPU or through it.
///
/// Owns the file's registrations with cuFile. Thread-safe; [#close] only when no read is under way.
public final class CuFilePath implements TransferPath, AutoCloseable {
  private final CuFileSession.Opened driver;
  private final CudaContext context;
  private final CuFileHandle handle;
  private final @Nullable CuFileHandle direct;
  private final Runnable whenClosed;
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile String bounced = "";

  /// @param handle past the page cache for [Transport#GDS], through it for [Transport#COMPAT]
  /// @param direct past the page cache for [Transport#COMPAT], where there is such a way
  CuFilePath(
      CuFileSession.Opened driver,
      CudaContext context,
      CuFileHandle handle,
      @Nullable CuFileHandle direct,
      Runnable whenClosed) {
    this.driver = driver;
    this.context = context;
    this.handle = handle;
    this.direct = direct;
    this.whenClosed = whenClosed;
  }

  /// [Transport#GDS] or [Transport#COMPAT].
  public Transport kind() {
    return driver.kind();
  }

  /// Why some memory was filled by way of cuFile's own buffers; empty where none was.
  String bounced() {
    return bounced;
  }

  /// Writes device memory to the file, past the page cache where the file is open so. What was
  /// queued on the device for that memory must be done. Counts short of the request are no errors
  /// to cuFile: they are continued here.
  ///
  /// @param file for messages
  /// @param memory the context of the device whose memory this is
  /// @return whether it went past the page cache
  public boolean write(Path file, CudaContext memory, long address, long bytes, long fileOffset) {
    CuFileHandle to = direct != null ? direct : handle;
    MemorySegment base = MemorySegment.ofAddress(address).reinterpret(bytes);
    long done = 0;
    try (var _ = memory.enter()) {
      while (done < bytes) {
        long count = driver.cuFile().write(to, base, bytes - done, fileOffset + done, done);
        if (count <= 0) {
          throw new TransferException(
              "cuFileWrite",
              file + " offset " + (fileOffset + done),
              new Failure.NothingWritten(bytes - done));
        }
        done += count;
      }
    }
    return direct != null || kind() == Transport.GDS;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      List<Runnable> actions = new ArrayList<>(List.of(handle::close, whenClosed));
      if (direct != null) {
        actions.add(direct::close);
      }
      Cleanup.runAll(actions);
    }
  }

  /// Nothing of its own: cuFile keeps what it needs, and there is nothing to wait for or to free.
  static final class CuFileLane implements Lane {
    private final CuFilePath path;

    CuFileLane(CuFilePath path) {
      this.path = path;
    }

    @Override
    public boolean read(SourceFile file, Read read, Target target, boolean wantDirect) {
      CuFileHandle past = wantDirect ? path.direct : null;
      CuFileHandle handle = past != null ? past : path.handle;
      if (!(target.slab() instanceof DeviceSlab slab)) {
        throw new MisuseException("cuFile cannot fill memory of " + target.slab().device());
      }
      if (path.kind() == Transport.GDS) {
        String refusal = path.driver.registrations().register(slab);
        if (!refusal.isEmpty()) {
          path.bounced = refusal;
        }
      }
      MemorySegment base = slab.deviceSegment();
      long done = 0;
      try (var _ = path.context.enter()) {
        if (target.free() != null) {
          // cuFile is ordered with no stream.
          path.context.driver().synchronize(target.free());
        }
        // Counts short of the request are no errors to cuFile: they are continued here, until what
        // is wanted has come.
        while (done < read.required()) {
          long count =
              path.driver
                  .cuFile()
                  .read(
                      handle,
                      base,
                      read.length() - done,
                      read.fileOffset() + done,
                      read.slabOffset() + done);
          if (count <= 0) {
            throw new TransferException(
                "cuFileRead",
                file.file() + " offset " + (read.fileOffset() + done),
                new Failure.EndOfFile(read.required() - done));
          }
          done += count;
        }
      }
      return past != null || path.kind() == Transport.GDS;
    }

    @Override
    public void drain() {}

    @Override
    public void close() {}
  }
}
