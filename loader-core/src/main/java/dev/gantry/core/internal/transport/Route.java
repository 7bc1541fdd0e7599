package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.store.SourceFile;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// How one file's bytes travel: which path takes what lies in the page cache, which takes the rest,
/// and why not a better one.
///
/// Owns the open file, and what cuFile has of it. Thread-safe; [#close] only when no read is under
/// way.
final class Route implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Route.class);

  /// For bytes that are not in the page cache.
  ///
  /// @param reason why not a better path; empty where there is none
  record Cold(TransferPath path, String reason) {}

  /// @param hot for bytes in the page cache
  /// @param cold for the rest; null until there is some
  private record Choice(TransferPath hot, @Nullable Cold cold) {}

  private final SourceFile file;
  private final Supplier<Cold> forCold;
  private @Nullable CuFilePath cuFile;
  private volatile Choice choice;

  /// @param forCold asked when something is to be read past the page cache, once: a file whose
  ///     bytes are all in memory costs no registration with cuFile
  Route(SourceFile file, TransferPath hot, Supplier<Cold> forCold) {
    this.file = file;
    this.forCold = forCold;
    this.choice = new Choice(hot, null);
  }

  /// Everything by one path.
  Route(SourceFile file, TransferPath path, String reason) {
    this(file, path, () -> new Cold(path, reason));
    var _ = cold();
  }

  SourceFile file() {
    return file;
  }

  TransferPath path(boolean direct) {
    return direct ? cold().path() : choice.hot();
  }

  /// Decides, unless that was done before.
  private Cold cold() {
    Cold decided = choice.cold();
    return decided == null ? decide() : decided;
  }

  private synchronized Cold decide() {
    Cold decided = choice.cold();
    if (decided == null) {
      decided = forCold.get();
      choice = new Choice(choice.hot(), decided);
      cuFile = decided.path() instanceof CuFilePath path ? path : null;
    }
    return decided;
  }

  /// From here on everything goes by `path`, since `failed` refused.
  synchronized void fallBack(TransferPath path, TransferException failed) {
    Cold cold = choice.cold();
    if (choice.hot().equals(path) && cold != null && cold.path().equals(path)) {
      return;
    }
    LOG.info("{}: falling back to {}: {}", file.file(), kind(path), failed.getMessage());
    new FallbackEvent(file.file().toString(), kind(path).toString(), failed.getMessage()).commit();
    choice = new Choice(path, new Cold(path, failed.getMessage()));
  }

  /// What was decided; the path of its hot bytes where it has had no others.
  TransferReport.FileReport report() {
    Choice now = choice;
    return now.cold() == null
        ? new TransferReport.FileReport(
            file.file(), kind(now.hot()), "nothing had to come past the page cache")
        : report(now.cold());
  }

  /// The path that its cold bytes would take.
  TransferReport.FileReport prediction() {
    return report(cold());
  }

  private TransferReport.FileReport report(Cold cold) {
    String reason =
        cold.reason().isEmpty() && cold.path() instanceof CuFilePath path
            ? path.bounced()
            : cold.reason();
    return new TransferReport.FileReport(file.file(), kind(cold.path()), reason);
  }

  static Transport kind(TransferPath path) {
    return switch (path) {
      case HostPath _ -> Transport.HOST;
      case StagedPath _ -> Transport.STAGED;
      case CuFilePath cuFile -> cuFile.kind();
    };
  }

  @Override
  public synchronized void close() {
    try {
      if (cuFile != null) {
        cuFile.close();
      }
    } finally {
      file.close();
    }
  }
}
