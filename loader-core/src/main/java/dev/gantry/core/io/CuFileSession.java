package dev.gantry.core.io;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.natives.CuFileProperties;
import dev.gantry.core.internal.natives.CuFileProperties.Storage;
import dev.gantry.core.memory.CudaContext;
import dev.gantry.core.memory.Registrations;
import dev.gantry.core.memory.Slab;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The cuFile driver, opened when the first file asks for it, and what it can do here.
///
/// libcufile opens happily where no direct I/O is to be had, and then carries everything through
/// the CPU without a word; so direct I/O is believed only where nvidia-fs is loaded or the driver
/// reports peer-to-peer NVMe. Thread-safe.
public final class CuFileSession implements AutoCloseable {
  private static final Path NVIDIA_FS = Path.of("/proc/driver/nvidia-fs/version");

  private @Nullable Availability<CuFile> driver;
  private @Nullable Registrations registrations;
  private boolean direct;

  /// The open driver, or why there is none.
  public synchronized Availability<CuFile> driver() {
    if (driver == null) {
      driver = CuFile.find().then(this::open);
    }
    return driver;
  }

  private Availability<CuFile> open(CuFile cuFile) {
    try {
      cuFile.openDriver();
    } catch (TransferException e) {
      return Availability.absent(e.getMessage());
    }
    try {
      CuFileProperties properties = cuFile.properties();
      direct = Files.exists(NVIDIA_FS) || properties.supported().contains(Storage.NVME_P2P);
      // BAR1 serves others too; cuFile's own bounce buffers come out of it.
      registrations = new Registrations(cuFile, context -> barBytes(cuFile, context) / 2);
      return Availability.present(cuFile);
    } catch (TransferException e) {
      // Open, but of no use: not left open, and not tried again for every file.
      cuFile.closeDriver();
      return Availability.absent(e.getMessage());
    }
  }

  /// As libcufile says from 1.15 on, else as sysfs does.
  private static long barBytes(CuFile cuFile, CudaContext context) {
    try {
      return cuFile
          .barSizeKib(context.device().ordinal())
          .toOptional()
          .map(kib -> kib << 10)
          .orElseGet(context::barBytes);
    } catch (TransferException _) {
      return context.barBytes();
    }
  }

  /// Whether bytes can go from a disk to device memory past the CPU.
  public synchronized Availability<Set<Storage>> direct() {
    return driver()
        .then(cuFile ->
            direct
                ? Availability.present(cuFile.properties().supported())
                : Availability.absent(
                    "neither nvidia-fs nor peer-to-peer NVMe is there, so cuFile would copy through"
                        + " the CPU"));
  }

  /// A file as cuFile wants it.
  ///
  /// @param buffered the descriptor that goes through the page cache
  /// @param direct the one that goes past it, or -1
  /// @param directAbsence why there is none
  public record OpenFile(Path file, int buffered, int direct, String directAbsence) {}

  /// A path for one file, which the caller closes before the file; or why cuFile does not take the
  /// file.
  public Availability<CuFilePath> pathTo(OpenFile file, CudaContext context, PathKind kind) {
    if (kind == PathKind.GDS && file.direct() < 0) {
      return Availability.absent(file.directAbsence());
    }
    Availability<CuFile> usable = kind == PathKind.GDS ? direct().then(_ -> driver()) : driver();
    return usable.then(cuFile -> register(cuFile, file, context));
  }

  private Availability<CuFilePath> register(CuFile cuFile, OpenFile file, CudaContext context) {
    try (var _ = context.enter()) {
      PathKind kind = isDirect() && file.direct() >= 0 ? PathKind.GDS : PathKind.COMPAT;
      CuFileHandle buffered = cuFile.registerHandle(file.file(), file.buffered());
      boolean complete = false;
      try {
        CuFileHandle past =
            file.direct() < 0 ? null : cuFile.registerHandle(file.file(), file.direct());
        complete = true;
        return Availability.present(
            new CuFilePath(
                cuFile,
                kind == PathKind.GDS ? registrations() : null,
                context,
                kind,
                buffered,
                past));
      } finally {
        if (!complete) {
          buffered.close();
        }
      }
    } catch (TransferException e) {
      return Availability.absent(e.getMessage());
    }
  }

  /// Deregisters memory that nothing is read into any more.
  void deregister(List<Slab> slabs) {
    Registrations known = registrations();
    if (known != null) {
      known.deregister(slabs);
    }
  }

  private synchronized @Nullable Registrations registrations() {
    return registrations;
  }

  private synchronized boolean isDirect() {
    return direct;
  }

  /// Closes the driver; no file may be registered any more.
  @Override
  public synchronized void close() {
    Availability<CuFile> before = driver;
    driver = Availability.absent("this session is closed");
    try {
      if (registrations != null) {
        registrations.clear();
        registrations = null;
      }
    } finally {
      if (before instanceof Availability.Present<CuFile>(CuFile open)) {
        open.closeDriver();
      }
    }
  }
}
