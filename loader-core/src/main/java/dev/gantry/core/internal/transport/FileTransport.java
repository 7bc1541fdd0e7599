// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransportOracle.Answer;
import dev.gantry.core.internal.transport.TransportOracle.Question;
import dev.gantry.core.spi.Descriptors;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/// Decides the transport of one open file: asks the [TransportOracle], holds the file's
/// registration with cuFile, and falls back to `staged` if cuFile fails. Thread-safe, except that
/// [#close] may run only when no transfer runs.
public final class FileTransport implements AutoCloseable {
  /// A file that is open for reading, and its transport.
  record OpenFile(SourceFile source, FileTransport transport) implements AutoCloseable {
    @Override
    public void close() {
      try (source;
          transport) {}
    }
  }

  private final Descriptors descriptors;
  private final CuFileSession cuFileSession;
  private final boolean fromCache;

  /// The context of the device whose memory is read into or written from; null for host memory.
  private final @Nullable CudaContext context;

  private volatile Question question;

  /// The file's registration with cuFile. It is kept until [#close], even after a fallback, since other threads may
  /// still use it.
  private volatile @Nullable CuFileTransport cuFile;

  /// The oracle's answer for bytes in the page cache. The oracle is asked for all other bytes,
  /// whose answer is in `uncached`, only before the first read of such bytes. Thus a file that is
  /// wholly in the page cache is not registered with cuFile.
  private volatile Answer cached;

  private volatile @Nullable Answer uncached;

  private volatile boolean fetched;

  /// @param only the only transport to use, or null to have the best one chosen
  /// @param fromCache whether this is a remote file that is wholly in the cache
  /// @throws dev.gantry.core.DeviceUnavailableException if there is no such device, or `only`
  ///     cannot serve
  public FileTransport(
      Location file,
      Descriptors descriptors,
      Device device,
      @Nullable Transport only,
      CuFileSession cuFileSession,
      boolean fromCache) {
    this.fromCache = fromCache;
    this.descriptors = descriptors;
    this.cuFileSession = cuFileSession;
    context = device instanceof Device.Cuda cuda ? CudaContext.of(cuda) : null;
    question =
        new Question(file, device, only, descriptors.absence(), descriptors.directAbsence(), "");
    cached = Cleanup.orUndo(() -> decide(true), this::close);
    uncached = only == null && context != null ? null : cached;
  }

  private Answer decide(boolean inPageCache) {
    return TransportOracle.decide(question, inPageCache, this::register);
  }

  private String register(Transport transport) {
    if (context == null) {
      throw new IllegalStateException("cuFile serves no host memory");
    }
    return switch (cuFileSession.open(path(), descriptors, context, transport)) {
      case Availability.Present<CuFileTransport>(CuFileTransport present) -> {
        cuFile = present;
        yield "";
      }
      case Availability.Absent<CuFileTransport>(String reason) -> reason;
    };
  }

  /// The file's name, for messages.
  private Path path() {
    return switch (question.file()) {
      case Location.Local(Path path, _) -> path;
      case Location.Remote remote -> Path.of(remote.toString());
    };
  }

  /// The transport for a range of the file.
  ///
  /// @param inPageCache whether the range is read through the page cache
  public Transport of(boolean inPageCache) {
    return inPageCache ? cached.transport() : uncached().transport();
  }

  private Answer uncached() {
    Answer decided = uncached;
    return decided == null ? decideUncached() : decided;
  }

  private synchronized Answer decideUncached() {
    Answer decided = uncached;
    if (decided == null) {
      decided = decide(false);
      uncached = decided;
    }
    return decided;
  }

  /// Whether the caller asked for one transport, which must not be replaced by another.
  boolean isAskedFor() {
    return question.only() != null;
  }

  /// Whether cuFile moves the bytes that are not in the page cache.
  public boolean usesCuFile() {
    return isByCuFile(of(false));
  }

  private static boolean isByCuFile(Transport transport) {
    return switch (transport) {
      case GDS, COMPAT -> true;
      case STAGED, MAPPED, HOST -> false;
    };
  }

  /// The file's registration with cuFile. May be called only after [#of] has returned a transport
  /// of cuFile.
  public synchronized CuFileTransport cuFile() {
    return Objects.requireNonNull(cuFile);
  }

  /// Has the whole file staged from now on, if cuFile has failed and the caller did not ask for
  /// one transport.
  ///
  /// @param used the transport that failed
  /// @return whether this is the file's first failure
  /// @throws TransferException `failed`, if the failed transport is not cuFile's, or the caller
  ///     asked for one transport
  public synchronized boolean fallBack(Transport used, TransferException failed) {
    if (!isByCuFile(used) || question.only() != null) {
      throw failed;
    }
    if (!question.failure().isEmpty()) {
      return false;
    }
    question = question.withFailure(failed.getMessage());
    cached = decide(true);
    uncached = cached;
    LoggerFactory.getLogger(FileTransport.class)
        .info("{}: falling back to {}: {}", question.file(), cached.transport(), cached.reason());
    TimedEvent.begun(EventKind.FALLBACK).done(question.file(), cached.transport(), cached.reason());
    return true;
  }

  /// Reports the transport of the bytes that were not in the page cache; if all bytes were in the
  /// page cache, reports their transport.
  public TransferReport.FileReport report() {
    Answer decided = uncached;
    return report(decided == null ? cached : decided);
  }

  /// Reports the transport that bytes outside the page cache would use.
  public TransferReport.FileReport prediction() {
    return report(uncached());
  }

  /// Reads the first block of the file by `gds`, if the oracle chose `gds`, to check that cuFile
  /// can read the file. If cuFile fails, the file is staged from then on.
  ///
  /// @param bytes the length of the file
  public void tryGds(long bytes) {
    if (bytes > 0 && context != null && of(false) == Transport.GDS) {
      try {
        cuFile().tryRead(path(), bytes);
      } catch (TransferException failed) {
        boolean _ = fallBack(Transport.GDS, failed);
      }
    }
  }

  /// Notes that kernels fetch this file's bytes from now on.
  void fetched() {
    fetched = true;
  }

  private TransferReport.FileReport report(Answer answer) {
    if (fetched) {
      return new TransferReport.FileReport(question.file(), Transport.MAPPED, "", fromCache);
    }
    String reason = answer.reason();
    CuFileTransport registered = cuFile;
    if (reason.isEmpty() && registered != null) {
      reason = registered.bounced();
    }
    return new TransferReport.FileReport(question.file(), answer.transport(), reason, fromCache);
  }

  @Override
  public synchronized void close() {
    if (cuFile != null) {
      cuFile.close();
      cuFile = null;
    }
  }
}
