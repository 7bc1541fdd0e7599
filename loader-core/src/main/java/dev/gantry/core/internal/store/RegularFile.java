// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.spi.Descriptors;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;

/// A local file that is open for I/O through the page cache, and also for direct I/O if
/// [#openDirect] was called and the file system can.
///
/// All reads and writes of whole ranges go through this class: it continues after short counts,
/// repeats calls that a signal interrupted, and goes on through the page cache if direct I/O is
/// refused. Thread-safe, except that [#close] may run only when no read or write runs.
public final class RegularFile {
  private static final int NONE = -1;

  private final FileCalls calls;
  private final Object shown;
  private final int buffered;
  private final FileCalls.StatResult stat;
  private final int memoryAlignment;
  private final int offsetAlignment;
  private final AtomicBoolean closed = new AtomicBoolean();
  private int direct = NONE;

  /// Why direct I/O is not used; empty if it is used.
  private volatile String directAbsence = "not wanted";

  /// Wraps a file that is open already.
  ///
  /// @param shown its name in messages
  public RegularFile(FileCalls calls, Object shown, int descriptor) {
    this(calls, shown, descriptor, FileCalls.StatResult.failed(0));
  }

  private RegularFile(FileCalls calls, Object shown, int buffered, FileCalls.StatResult stat) {
    this.calls = calls;
    this.shown = shown;
    this.buffered = buffered;
    this.stat = stat;
    this.memoryAlignment = orBlock(stat.directMemoryAlignment());
    this.offsetAlignment = orBlock(stat.directOffsetAlignment());
  }

  /// The alignment in bytes; if the kernel does not tell it, the size of a block, which every disk
  /// and file system accepts.
  private static int orBlock(int alignment) {
    return alignment > 0 ? alignment : PlanLimits.BLOCK_BYTES;
  }

  /// @param flags the flags of `open(2)`
  /// @param mode the mode of the file if this call creates it
  /// @param shown its name in messages
  /// @throws TransferException if the file cannot be opened, or is a directory
  /// @throws MalformedFileException of kind `not-a-regular-file` for a pipe, a socket or a device
  public static RegularFile open(FileCalls calls, Path path, int flags, int mode, Path shown) {
    return Cleanup.orUndo(
        () -> {
          int descriptor = FileCalls.retried(() -> calls.open(path, flags, mode));
          if (descriptor < 0) {
            throw failure(-descriptor, shown);
          }
          return descriptor;
        },
        descriptor -> {
          FileCalls.StatResult stat = calls.stat(descriptor);
          if (stat.status() >= 0 && !stat.regular()) {
            throw stat.directory()
                ? FileErrors.ofDirectory("open", shown.toString())
                : notRegular(shown);
          }
          return new RegularFile(calls, shown, descriptor, stat);
        },
        calls::close);
  }

  /// Checks that a file can be written, with [#open]'s errors, by opening and closing it. Callers
  /// then open the file with the JDK, which would wait for the other end if it were a pipe.
  public static void requireWritable(Path path) {
    boolean _ = open(FileCalls.ofPlatform(), path, FileCalls.O_WRONLY, 0, path).close();
  }

  /// Refuses a path, with [#open]'s errors, that a rename must not replace by a file: a pipe, a
  /// socket or a device, also behind a link. Folders are refused, too: the rename would fail, but
  /// only after all bytes were written.
  public static void requireReplaceable(Path path) {
    if (Files.isDirectory(path)) {
      throw FileErrors.ofDirectory("open", path.toString());
    }
    if (Files.exists(path) && !Files.isRegularFile(path)) {
      throw notRegular(path);
    }
  }

  private static GantryException failure(int errno, Path shown) {
    return errno == Errno.ENXIO.code()
        ? notRegular(shown)
        : FileErrors.of("open", shown.toString(), errno);
  }

  private static MalformedFileException notRegular(Path shown) {
    return new MalformedFileException(shown, 0, "not-a-regular-file", "a pipe, socket or device");
  }

  /// Opens the same file for direct I/O, before anything is read or written. If this fails,
  /// [#directAbsence] has the reason; it is `ESTALE` if another file has the name by now.
  ///
  /// @param path the path under which the file was opened
  /// @param flags the flags of `open(2)`, without the flag for direct I/O
  /// @return the descriptor, or the negated `errno`
  public int openDirect(Path path, int flags) {
    int opened = FileCalls.retried(() -> calls.open(path, flags | calls.directFlag(), 0));
    // The field is set before anything may throw, so that [#close] closes the descriptor.
    direct = Math.max(opened, NONE);
    if (opened >= 0 && stat.status() >= 0 && !stat.isSameFile(calls.stat(opened))) {
      direct = NONE;
      int _ = calls.close(opened);
      opened = -Errno.ESTALE.code();
    }
    directAbsence = opened < 0 ? refusal("open", -opened) : "";
    return opened;
  }

  /// Has all I/O go through the page cache, instead of calling [#openDirect].
  public void refuseDirect(String reason) {
    directAbsence = reason;
  }

  private static String refusal(String operation, int errno) {
    return operation + " with O_DIRECT: " + Errno.failure(errno).describe();
  }

  /// The result of `statx(2)` from when the file was opened; its status tells whether the call
  /// failed.
  public FileCalls.StatResult stat() {
    return stat;
  }

  /// The descriptor that goes through the page cache.
  public int descriptor() {
    return buffered;
  }

  /// The file's descriptors, for libraries such as cuFile that read and write the file themselves.
  public Descriptors descriptors() {
    String absence = calls.descriptorAbsence();
    return absence.isEmpty()
        ? new Descriptors(buffered, direct, "", directAbsence)
        : Descriptors.none(absence);
  }

  /// Why all bytes go through the page cache; empty if direct I/O is possible.
  public String directAbsence() {
    return directAbsence;
  }

  /// Whether the file is also open for direct I/O.
  public boolean hasDirect() {
    return direct != NONE;
  }

  /// Whether direct I/O can move all of this memory from or to this offset.
  public boolean isAligned(MemorySegment memory, long offset) {
    return offset % offsetAlignment == 0
        && memory.byteSize() % offsetAlignment == 0
        && memory.address() % memoryAlignment == 0;
  }

  /// Fills `target` from `offset` on. The file must have the first `required` bytes; it may end
  /// after them.
  ///
  /// @param directly whether to go past the page cache, as far as that is possible
  /// @return whether all bytes came past the page cache
  /// @throws TransferException on any failure, and at an end of the file before `required` bytes
  public boolean read(MemorySegment target, long offset, long required, boolean directly) {
    return move(false, target, offset, required, directly && direct != NONE);
  }

  /// Writes all of `source` at `offset`, past the page cache as far as that is possible.
  ///
  /// @return whether all bytes went past the page cache
  /// @throws TransferException on any failure
  public boolean write(MemorySegment source, long offset) {
    return move(true, source, offset, source.byteSize(), directAbsence.isEmpty());
  }

  private boolean move(
      boolean writes, MemorySegment memory, long offset, long required, boolean mayGoDirectly) {
    long done = 0;
    boolean directly = mayGoDirectly && isAligned(memory, offset);
    boolean wentDirectly = directly;
    while (done < required) {
      MemorySegment rest = memory.asSlice(done);
      long length = rest.byteSize();
      int descriptor = directly ? direct : buffered;
      long count =
          writes
              ? calls.pwrite(descriptor, rest, length, offset + done)
              : calls.pread(descriptor, rest, length, offset + done);
      if (count == -Errno.EINTR.code()) {
        continue;
      }
      if (count == -Errno.EINVAL.code() && directly) {
        // Some file systems accept O_DIRECT when a file is opened, but refuse reads or writes with
        // it.
        directly = false;
        if (writes) {
          directAbsence = refusal("pwrite", Errno.EINVAL.code());
        }
        continue;
      }
      if (count <= 0) {
        throw failure(writes, offset + done, length, required - done, count);
      }
      done += count;
      wentDirectly &= directly;
      // After a short count the next offset may be within a block, where direct I/O is refused.
      directly = directly && count % offsetAlignment == 0 && count % memoryAlignment == 0;
    }
    return wentDirectly;
  }

  private TransferException failure(
      boolean writes, long offset, long length, long missing, long count) {
    Failure failure =
        count < 0
            ? Errno.failure((int) -count)
            : writes ? new Failure.NothingWritten(missing) : new Failure.EndOfFile(missing);
    return new TransferException(
        writes ? "pwrite" : "pread", shown + " offset " + offset + " length " + length, failure);
  }

  /// Returns when everything written is on the disk. An `fsync` is never repeated, since the kernel
  /// drops bytes that it failed to write and then reports success.
  ///
  /// @throws TransferException if the disk fails
  public void sync() {
    Errno.check(calls.fsync(buffered), "fsync", shown);
  }

  /// Closes the file. An error of `close` is ignored, because written bytes were synchronised
  /// before, or are abandoned.
  ///
  /// @return whether the file was still open
  public boolean close() {
    if (!closed.compareAndSet(false, true)) {
      return false;
    }
    int _ = calls.close(buffered);
    if (direct != NONE) {
      int _ = calls.close(direct);
    }
    return true;
  }
}
