// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CuFileConfig;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.cufile.CuFileGate;
import dev.gantry.core.internal.cufile.CuFileHardware;
import dev.gantry.core.internal.cufile.DriverSettings;
import dev.gantry.core.internal.cufile.RegistrationCache;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.spi.Descriptors;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Opens the cuFile driver for the first file that needs it, for [Transport#GDS] or [Transport#COMPAT]. The driver
/// serves one of these transports at a time, and can change when no file is open. Thread-safe.
///
/// [CuFileGate] decides whether the open driver serves a transport.
public final class CuFileSession implements AutoCloseable {
  /// The open driver.
  ///
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  /// @param registrations the registered memory; only [Transport#GDS] gains from registration
  record Opened(CuFile cuFile, Transport kind, RegistrationCache registrations) {}

  /// The reason why the driver cannot serve a transport, kept so that opening it is not tried
  /// again for every file.
  private final Map<Transport, String> refusals = new EnumMap<>(Transport.class);

  /// The session's settings; null for libcufile's own.
  private final @Nullable CuFileConfig settings;

  private @Nullable Opened opened;
  private int files;
  private boolean closed;

  /// @param settings the session's settings; null for libcufile's own
  public CuFileSession(@Nullable CuFileConfig settings) {
    this.settings = settings;
  }

  /// Opens the driver unless it is open; absent with the reason if the driver cannot be opened for
  /// this transport.
  ///
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  public synchronized Availability<CuFile> driver(Transport kind) {
    if (closed) {
      return Availability.absent("this session is closed");
    }
    if (refusals.containsKey(kind)) {
      return Availability.absent(refusals.get(kind));
    }
    if (opened != null && opened.kind() == kind) {
      return Availability.present(opened.cuFile());
    }
    if (opened != null && files > 0) {
      return Availability.absent(
          "this session has files open by " + opened.kind() + ", and cuFile serves one at a time");
    }
    closeDriver();
    Availability<CuFile> driver =
        CuFile.find()
            .then(cuFile -> DriverSettings.open(settings, cuFile, () -> openDriver(cuFile, kind)));
    switch (driver) {
      case Availability.Present<CuFile>(CuFile cuFile) ->
          opened =
              Cleanup.orUndo(
                  () ->
                      new Opened(
                          cuFile,
                          kind,
                          new RegistrationCache(CuFileHardware.withHalfOfBar1(cuFile))),
                  () -> DriverSettings.close(() -> closeDriver(cuFile, kind)));
      case Availability.Absent<CuFile>(String reason) -> {
        if (!reason.equals(DriverSettings.OTHERS)) {
          refusals.put(kind, reason);
        }
      }
    }
    return driver;
  }

  /// Registers a file with cuFile; absent with the reason if cuFile does not take it. The caller closes the
  /// registration before the file.
  ///
  /// @param descriptors the file's descriptors; [Transport#GDS] needs the direct one
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  public Availability<CuFileTransport> open(
      Path file, Descriptors descriptors, CudaContext context, Transport kind) {
    return enter(kind)
        .then(driver -> {
          Availability<CuFileTransport> registered =
              Cleanup.orUndo(() -> register(driver, file, descriptors, context), this::leave);
          if (registered instanceof Availability.Absent<CuFileTransport>) {
            leave();
          }
          return registered;
        });
  }

  private synchronized Availability<Opened> enter(Transport kind) {
    return driver(kind)
        .then(_ -> {
          files++;
          return Availability.present(Objects.requireNonNull(opened));
        });
  }

  private synchronized void leave() {
    files--;
  }

  private Availability<CuFileTransport> register(
      Opened driver, Path file, Descriptors descriptors, CudaContext context) {
    TimedEvent event = TimedEvent.begun(EventKind.REGISTRATION);
    CuFile cuFile = driver.cuFile();
    int direct = descriptors.direct();
    boolean gds = driver.kind() == Transport.GDS;
    try (var _ = context.enter()) {
      return Cleanup.orUndo(
          () -> cuFile.registerHandle(file, gds ? direct : descriptors.buffered()),
          handle -> {
            CuFileHandle second = gds || direct < 0 ? null : cuFile.registerHandle(file, direct);
            event.done(file, context.device(), 0, "");
            return Availability.present(
                new CuFileTransport(driver, context, handle, second, this::leave));
          },
          CuFileHandle::close);
    } catch (TransferException e) {
      event.done(file, context.device(), 0, e.getMessage());
      return Availability.absent(e.getMessage());
    }
  }

  /// Deregisters slabs that will not be read into again.
  public void deregister(List<Slab> slabs) {
    registrations().ifPresent(all -> all.forget(slabs));
  }

  private synchronized Optional<RegistrationCache> registrations() {
    return Optional.ofNullable(opened).map(Opened::registrations);
  }

  /// Closes the driver. All files must be closed.
  @Override
  public synchronized void close() {
    closed = true;
    closeDriver();
  }

  private void closeDriver() {
    Opened closing = opened;
    opened = null;
    if (closing != null) {
      Cleanup.runAll(
          List.of(
              closing.registrations()::clear,
              () -> DriverSettings.close(() -> closeDriver(closing.cuFile(), closing.kind()))));
    }
  }

  /// Opens the driver, which [#closeDriver] closes; absent with the reason if it cannot serve this transport.
  ///
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  private static Availability<CuFile> openDriver(CuFile cuFile, Transport kind) {
    CuFileGate.configure(cuFile, kind, true);
    try {
      cuFile.openDriver();
    } catch (TransferException e) {
      CuFileGate.configure(cuFile, kind, false);
      return Availability.absent(e.getMessage());
    }
    String objection;
    try {
      objection = CuFileGate.objection(cuFile, kind);
    } catch (TransferException e) {
      objection = e.getMessage();
    }
    if (objection.isEmpty()) {
      return Availability.present(cuFile);
    }
    closeDriver(cuFile, kind);
    return Availability.absent(objection);
  }

  /// Closes the driver, and restores libcufile's default configuration for other users in this
  /// process.
  ///
  /// Waits first for the end of Gantry's threads that called libcufile: when such threads ended
  /// some seconds after the driver was closed, the C library aborted the process on an H200 host
  /// ("free(): invalid pointer"). No other job of Gantry uses libcufile then, because the driver
  /// is closed only after all files are closed, and a job keeps its files open until it ends.
  private static void closeDriver(CuFile cuFile, Transport kind) {
    WorkerThreads.awaitCallersOfCuFile();
    try {
      cuFile.closeDriver();
    } finally {
      CuFileGate.configure(cuFile, kind, false);
    }
  }
}
