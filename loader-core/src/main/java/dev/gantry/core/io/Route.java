package dev.gantry.core.io;

import dev.gantry.core.TransferException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// How one file's bytes travel: which path takes what lies in the page cache, which takes the rest,
/// and why not a better one.
///
/// Owns the open file. Thread-safe; [#close] only when no read is under way.
final class Route implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Route.class);

  /// @param hot for bytes in the page cache
  /// @param cold for the rest
  /// @param reason why not a better path; empty where there is none
  private record Choice(TransferPath hot, TransferPath cold, String reason) {}

  private final SourceFile file;
  private final Choice first;
  private volatile Choice choice;

  Route(SourceFile file, TransferPath hot, TransferPath cold, String reason) {
    this.file = file;
    this.first = new Choice(hot, cold, reason);
    this.choice = first;
  }

  SourceFile file() {
    return file;
  }

  TransferPath path(boolean direct) {
    return direct ? choice.cold() : choice.hot();
  }

  /// From here on everything goes by `path`, since `failed` refused.
  synchronized void fallBack(TransferPath path, TransferException failed) {
    if (choice.hot().equals(path) && choice.cold().equals(path)) {
      return;
    }
    LOG.info("{}: falling back to {}: {}", file.file(), kind(path), failed.getMessage());
    new FallbackEvent(file.file().toString(), kind(path).toString(), failed.getMessage()).commit();
    choice = new Choice(path, path, failed.getMessage());
  }

  TransferReport.FileReport report() {
    Choice now = choice;
    String reason =
        now.reason().isEmpty() && now.cold() instanceof CuFilePath cuFile
            ? cuFile.bounced()
            : now.reason();
    return new TransferReport.FileReport(file.file(), kind(now.cold()), reason);
  }

  static PathKind kind(TransferPath path) {
    return switch (path) {
      case HostPath _ -> PathKind.HOST;
      case StagedPath _ -> PathKind.STAGED;
      case CuFilePath cuFile -> cuFile.kind();
    };
  }

  @Override
  public void close() {
    try {
      if (first.cold() instanceof CuFilePath cuFile) {
        cuFile.close();
      }
    } finally {
      file.close();
    }
  }
}
