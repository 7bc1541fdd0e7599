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
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
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
  /// @param closing the steps that close the driver, made before it is opened, so that closing it
  ///     needs no heap
  record Opened(
      CuFile cuFile, Transport kind, RegistrationCache registrations, List<Runnable> closing) {
    private static Opened of(CuFile cuFile, Transport kind) {
      RegistrationCache registrations =
          new RegistrationCache(CuFileHardware.withHalfOfBar1(cuFile));
      Runnable close = () -> closeDriver(cuFile, kind);
      return new Opened(
          cuFile,
          kind,
          registrations,
          List.of(registrations::clear, () -> DriverSettings.close(close)));
    }
  }

  /// The open sessions that know why the driver cannot serve a transport.
  private static final Set<CuFileSession> REFUSED = ConcurrentHashMap.newKeySet();

  /// The reason why the driver cannot serve a transport, kept so that opening it is not tried
  /// again for every file. Other sessions with the same settings read it, too, since asking opens the
  /// driver and closes it beside the loads of all sessions.
  private final Map<Transport, String> refusals = new ConcurrentHashMap<>();

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
    if (opened != null && opened.kind() == kind) {
      return Availability.present(opened.cuFile());
    }
    Optional<String> refusal = refusal(kind);
    if (refusal.isPresent()) {
      return Availability.absent(refusal.get());
    }
    if (opened != null && files > 0) {
      return Availability.absent(
          "this session has files open by " + opened.kind() + ", and cuFile serves one at a time");
    }
    closeDriver();
    Availability<Opened> driver =
        CuFile.find()
            .then(cuFile -> {
              String absence = kind == Transport.GDS ? CuFileGate.absence(cuFile, settings) : "";
              if (!absence.isEmpty()) {
                return Availability.absent(absence);
              }
              Availability<Opened> present = Availability.present(Opened.of(cuFile, kind));
              return DriverSettings.open(settings, cuFile, () -> openDriver(cuFile, kind, present));
            });
    switch (driver) {
      case Availability.Present<Opened>(Opened present) -> opened = present;
      case Availability.Absent<Opened>(String reason) -> {
        if (!reason.equals(DriverSettings.OTHERS)) {
          refusals.put(kind, reason);
          REFUSED.add(this);
        }
      }
    }
    return driver.then(present -> Availability.present(present.cuFile()));
  }

  /// The reason why the driver cannot serve a transport, as this session or another with the same
  /// settings found; empty if none has found one.
  private Optional<String> refusal(Transport kind) {
    return REFUSED.stream()
        .filter(each -> Objects.equals(each.settings, settings))
        .flatMap(each -> Stream.ofNullable(each.refusals.get(kind)))
        .findFirst();
  }

  /// Registers a file with cuFile; absent with the reason if cuFile does not take it. The caller closes the
  /// registration before the file.
  ///
  /// @param descriptors the file's descriptors; [Transport#GDS] needs the direct one
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  public Availability<CuFileTransport> open(
      Path file, Descriptors descriptors, CudaContext context, Transport kind) {
    return Cleanup.orUndo(
        () -> enter(kind),
        entered -> {
          Availability<CuFileTransport> registered =
              entered.then(driver -> register(driver, file, descriptors, context));
          if (registered instanceof Availability.Absent<CuFileTransport>) {
            leave(entered);
          }
          return registered;
        },
        this::leave);
  }

  private synchronized Availability<Opened> enter(Transport kind) {
    return driver(kind)
        .then(_ -> {
          Availability<Opened> present = Availability.present(Objects.requireNonNull(opened));
          files++;
          return present;
        });
  }

  private void leave(Availability<Opened> entered) {
    if (entered instanceof Availability.Present<Opened>) {
      leave();
    }
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
            Function<@Nullable CuFileHandle, Availability<CuFileTransport>> registered =
                second -> {
                  event.done(file, context.device(), 0, "");
                  return Availability.present(
                      new CuFileTransport(driver, context, handle, second, this::leave));
                };
            return gds || direct < 0
                ? registered.apply(null)
                : Cleanup.orUndo(
                    () -> cuFile.registerHandle(file, direct), registered, CuFileHandle::close);
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
    REFUSED.remove(this);
    closeDriver();
  }

  private void closeDriver() {
    Opened closing = opened;
    opened = null;
    if (closing != null) {
      Cleanup.runAll(closing.closing());
    }
  }

  /// Opens the driver, which [#closeDriver] closes; absent with the reason if it cannot serve this transport.
  ///
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  /// @param present the answer if it can serve
  private static Availability<Opened> openDriver(
      CuFile cuFile, Transport kind, Availability<Opened> present) {
    Supplier<String> examine = () -> objection(cuFile, kind);
    Runnable close = () -> closeDriver(cuFile, kind);
    try {
      Cleanup.orUndo(
          () -> {
            CuFileGate.configure(cuFile, kind, true);
            cuFile.openDriver();
          },
          () -> CuFileGate.configure(cuFile, kind, false));
    } catch (TransferException e) {
      return Availability.absent(e.getMessage());
    }
    String objection = Cleanup.orUndo(examine, close);
    if (objection.isEmpty()) {
      return present;
    }
    close.run();
    return Availability.absent(objection);
  }

  private static String objection(CuFile cuFile, Transport kind) {
    try {
      return CuFileGate.objection(cuFile, kind);
    } catch (TransferException e) {
      return e.getMessage();
    }
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
