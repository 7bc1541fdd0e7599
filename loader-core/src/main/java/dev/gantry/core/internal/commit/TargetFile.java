// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.RegularFile;
import dev.gantry.core.spi.Descriptors;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;

/// One file that is open for writing, past the page cache if the file system can, otherwise
/// through the page cache. Thread-safe, but [#close] may be called only when no write is running.
final class TargetFile implements AutoCloseable {
  /// The fewest bytes for which a write through the page cache starts the writeback. For fewer
  /// bytes, the kernel decides when to write them.
  private static final long LEAST_WRITEBACK_BYTES = 1 << 20;

  /// The mode of new files: everyone may read and write, less the umask, as for files of other programs.
  private static final int MODE = 0666;

  private static final LinkOption[] NOT_FOLLOWED = {LinkOption.NOFOLLOW_LINKS};

  private final FileCalls calls;
  private final Path file;
  private final Path target;
  private final RegularFile opened;

  /// @param file the file's path, where no file exists yet
  /// @param target the name that the file will get, for messages
  /// @param pageCache whether to write through the page cache also if the file system takes direct I/O
  /// @throws TransferException if the file cannot be created, or exists already
  TargetFile(FileCalls calls, Path file, Path target, boolean pageCache) {
    this(calls, file, target, pageCache, FileCalls.O_CREAT | FileCalls.O_EXCL);
  }

  /// Creates a file with a temporary name.
  ///
  /// @param held whether to hold the file's lock until [#close], so that [Leftovers] does not
  ///     remove it
  /// @throws TransferException if the file cannot be created, or the target is a folder
  /// @throws MalformedFileException of kind `not-a-regular-file` if the target is a pipe, a socket or a device
  static TargetFile create(FileCalls calls, Path target, boolean pageCache, boolean held) {
    RegularFile.requireReplaceable(target);
    while (true) {
      TargetFile file =
          new TargetFile(calls, TemporaryName.beside(target, held), target, pageCache);
      if (!held || file.hold()) {
        return file;
      }
      file.close();
    }
  }

  /// Locks the file. Returns false if another process began to remove the file, as one of a killed
  /// writer, before it was locked.
  private boolean hold() {
    int result = calls.lock(opened.descriptor(), FileCalls.F_WRLCK, 0, 0);
    return result != -Errno.EAGAIN.code() && !Files.notExists(file, NOT_FOLLOWED);
  }

  /// Opens a file that is to be changed in place. Creates the file if it does not exist.
  static TargetFile inPlace(FileCalls calls, Path file, boolean pageCache) {
    return new TargetFile(calls, file, file, pageCache, FileCalls.O_CREAT);
  }

  private TargetFile(FileCalls calls, Path file, Path target, boolean pageCache, int creation) {
    this.calls = calls;
    this.file = file;
    this.target = target;
    opened =
        Cleanup.orUndo(
            // The file is opened for reading, too, since cuFile reads the block when it writes a
            // part of a block.
            () -> RegularFile.open(calls, file, FileCalls.O_RDWR | creation, MODE, target),
            made -> {
              if (!pageCache) {
                int _ = made.openDirect(file, FileCalls.O_RDWR);
              }
              return made;
            },
            RegularFile::close);
    LiveResources.add(LiveResources.Kind.OPEN_FILES, 1);
  }

  /// Returns the name under which the file was opened.
  Path file() {
    return file;
  }

  /// Returns the file's descriptors, for cuFile.
  Descriptors descriptors() {
    return opened.descriptors();
  }

  /// Returns the reason why writes go through the page cache; empty if none did so far.
  String directAbsence() {
    return opened.directAbsence();
  }

  /// Allocates disk space, in one extent if possible, so that a full disk is noticed before much
  /// is written. Does nothing on file systems that cannot allocate.
  void allocate(long bytes) {
    if (bytes == 0) {
      return;
    }
    int result = FileCalls.retried(() -> calls.fallocate(opened.descriptor(), 0, 0, bytes));
    if (result != -Errno.EOPNOTSUPP.code()) {
      Errno.check(result, Errno.ENOSYS, "fallocate", target + " length " + bytes);
    }
  }

  /// Whether this memory can be written at this offset without a copy.
  boolean takes(MemorySegment source, long offset) {
    return !opened.directAbsence().isEmpty() || opened.isAligned(source, offset);
  }

  /// Writes all of `source` at `offset`.
  ///
  /// @return whether all bytes went past the page cache
  /// @throws TransferException on any failure
  boolean write(MemorySegment source, long offset) {
    boolean wentDirectly = opened.write(source, offset);
    if (!wentDirectly && source.byteSize() >= LEAST_WRITEBACK_BYTES) {
      // Without this call, the kernel may begin to write the bytes to the disk only in fsync,
      // which would wait longer then.
      int _ = calls.startWriteback(opened.descriptor(), offset, source.byteSize());
    }
    return wentDirectly;
  }

  void truncate(long size) {
    int result = FileCalls.retried(() -> calls.ftruncate(opened.descriptor(), size));
    Errno.check(result, "ftruncate", target + " length " + size);
  }

  /// Returns when everything written is on the disk.
  void sync() {
    TimedEvent event = TimedEvent.begun(EventKind.COMMIT);
    try {
      opened.sync();
    } finally {
      event.done("synchronise file", target);
    }
  }

  @Override
  public void close() {
    if (opened.close()) {
      LiveResources.add(LiveResources.Kind.OPEN_FILES, -1);
    }
  }
}
