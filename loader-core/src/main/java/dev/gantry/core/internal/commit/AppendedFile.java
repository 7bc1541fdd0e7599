// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.natives.FileCalls;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;

/// Writes one new file of unknown size from beginning to end. A crash at any point leaves either
/// the old file or the complete new file:
///
/// 1. Create a file with a unique temporary name in the target's folder, and hold its lock until
///    step 4.
/// 2. Append to the file, through the page cache.
/// 3. Synchronise the file.
/// 4. Rename the file to its target.
/// 5. Synchronise the folder.
///
/// If the file fails or is closed before step 4, it is removed, and nothing has changed. A failed
/// step 3 is not repeated, since the kernel may have dropped bytes that it could not write. If
/// step 5 fails, the new file has its name, but a crash may bring the old file back. Not
/// thread-safe.
public final class AppendedFile implements AutoCloseable {
  private static final int BUFFER_BYTES = 256 << 10;

  private enum State {
    OPEN,
    FAILED,
    RENAMED
  }

  private final SessionCounters counters;
  private final Folders folders;
  private final Path file;
  private final TargetFile target;
  private final HostSlab buffer;
  private long written;
  private int buffered;
  private State state = State.OPEN;
  private boolean closed;

  /// Does step 1.
  ///
  /// @param counters the session's counters; the file may be used longer than the session
  /// @throws TransferException if the file cannot be created
  public AppendedFile(FileCalls calls, Path file, SessionCounters counters) {
    this.counters = counters;
    folders = new Folders(calls);
    this.file = file;
    Leftovers.remove(calls, Folders.parent(file));
    Runnable remove = this::remove;
    target = TargetFile.create(calls, file, true, true);
    buffer = Cleanup.orUndo(() -> HostSlab.allocate(BUFFER_BYTES), remove);
  }

  private void remove() {
    try (target) {
      folders.removeFile(target.file());
    }
  }

  /// Returns the name that the file gets by [#commit].
  public Path file() {
    return file;
  }

  /// Does step 2.
  ///
  /// @param bytes host memory, which the caller may change afterwards
  /// @throws TransferException if the file cannot be written; every later call fails then
  /// @throws MisuseException if the file has failed before, or was committed or closed
  public void append(MemorySegment bytes) {
    requireOpen();
    long done = 0;
    while (done < bytes.byteSize()) {
      if (buffered == BUFFER_BYTES) {
        flush();
      }
      long step = Math.min(BUFFER_BYTES - buffered, bytes.byteSize() - done);
      MemorySegment.copy(bytes, done, buffer.segment(), buffered, step);
      buffered += (int) step;
      done += step;
    }
  }

  private void flush() {
    state = State.FAILED;
    boolean _ = target.write(buffer.segment().asSlice(0, buffered), written);
    counters.addWritten(Transport.HOST, buffered);
    written += buffered;
    buffered = 0;
    state = State.OPEN;
  }

  private void requireOpen() {
    if (closed || state != State.OPEN) {
      throw new MisuseException(
          "the writer of "
              + file
              + (state == State.FAILED ? " failed earlier" : " is closed already"));
    }
  }

  /// Synchronises all files, then renames them to their targets in this order, and returns when
  /// the names are on the disk, too. All files are closed then, also after a failure.
  ///
  /// @throws TransferException if a file cannot be written or synchronised, and then no file has
  ///     its name; or if a rename or the synchronisation of a folder fails, and then some files
  ///     may have their names
  /// @throws MisuseException if a file has failed before, or was committed or closed
  public static void commit(List<AppendedFile> files) {
    Cleanup.orUndo(
        () -> {
          files.forEach(AppendedFile::synchronise);
          files.forEach(AppendedFile::rename);
          files.stream()
              .map(file -> Folders.parent(file.file))
              .distinct()
              .forEach(folder -> files.getFirst().folders.sync(folder));
        },
        () -> Cleanup.forEach(files, AppendedFile::close));
    Cleanup.forEach(files, AppendedFile::close);
  }

  /// Does step 3.
  private void synchronise() {
    requireOpen();
    flush();
    state = State.FAILED;
    target.sync();
  }

  /// Does step 4.
  private void rename() {
    folders.rename(target.file(), file);
    state = State.RENAMED;
    counters.addFiles(1);
  }

  /// Closes the file, and removes it unless it was renamed to its target.
  ///
  /// @throws TransferException if the file cannot be removed
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      try (target) {
        buffer.release();
        if (state != State.RENAMED) {
          folders.removeFile(target.file());
        }
      }
    }
  }
}
