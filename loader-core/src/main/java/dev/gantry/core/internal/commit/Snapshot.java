package dev.gantry.core.internal.commit;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/// Files to be written whose bytes are copies, so that the memory they were copied from may change.
/// Holds memory until it is closed. Thread-safe.
public final class Snapshot implements AutoCloseable {
  private final List<NewFile> files;
  private final Runnable giveBack;
  private final AtomicBoolean closed = new AtomicBoolean();

  Snapshot(List<NewFile> files, Runnable giveBack) {
    this.files = List.copyOf(files);
    this.giveBack = giveBack;
  }

  /// The files that were asked for, with parts of the same bytes.
  public List<NewFile> files() {
    return files;
  }

  /// Gives the memory back; nothing may read the files' parts any more.
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      giveBack.run();
    }
  }
}
