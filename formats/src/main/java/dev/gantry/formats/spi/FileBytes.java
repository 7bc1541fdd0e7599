// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A file of any store, open for reading its metadata. Not thread-safe.
public final class FileBytes implements AutoCloseable {
  private static final int LOCAL_WINDOW_BYTES = 64 << 10;

  /// The size of a window on a remote file: smaller requests take hardly less time.
  private static final int REMOTE_WINDOW_BYTES = 1 << 20;

  /// How many windows are kept. An archive's directory and headers lie at several offsets, so one
  /// window would not do.
  private static final int WINDOWS = 4;

  private final GantrySession session;
  private final SourceFile file;
  private final int windowBytes;
  private final Arena arena = Arena.ofShared();

  /// The number of the window that each buffer holds; -1 if the buffer holds no window.
  private final long[] numbers = {-1, -1, -1, -1};

  private final @Nullable MemorySegment[] windows = new MemorySegment[WINDOWS];

  /// The index of the buffer that takes the next window.
  private int next;

  private FileBytes(GantrySession session, SourceFile file) {
    this.session = session;
    this.file = file;
    this.windowBytes = file.isLocal() ? LOCAL_WINDOW_BYTES : REMOTE_WINDOW_BYTES;
  }

  /// Opens a file by the stores of a session.
  ///
  /// @throws TransferException if the file cannot be opened, or is a directory
  /// @throws MalformedFileException of kind `not-a-regular-file` for a pipe, a socket or a device
  public static FileBytes open(Session session, Location file) {
    GantrySession own = GantrySession.of(session);
    return Cleanup.orUndo(
        () -> own.openFile(file), opened -> new FileBytes(own, opened), SourceFile::close);
  }

  /// Opens a local file, as [#open(Session, Location)] does.
  public static FileBytes open(Session session, Path file) {
    return open(session, Location.of(file));
  }

  /// The session whose stores opened the file. A format opens other files that this file names by the same
  /// session.
  public Session session() {
    return session;
  }

  /// The file's location with the version that is open, so that later reads by this location cannot get
  /// another version.
  public Location file() {
    return file.file().at(file.identity());
  }

  /// The file's length in bytes when it was opened.
  public long length() {
    return file.size();
  }

  /// Fills `target` from `offset` on. Direct buffers are filled straight from the file, others from windows
  /// that read ahead.
  ///
  /// @throws TransferException if a read fails, or the file has become too short meanwhile
  public void readFully(ByteBuffer target, long offset) {
    if (Thread.currentThread().isInterrupted()) {
      throw WorkerThreads.interrupted("read", file().toString());
    }
    long missing = offset + target.remaining() - length();
    if (missing > 0) {
      throw new TransferException(
          "read",
          file() + ", offset " + offset + ", length " + target.remaining(),
          new Failure.EndOfFile(missing));
    }
    MemorySegment rest = MemorySegment.ofBuffer(target);
    if (target.isDirect()) {
      boolean _ = file.read(rest, offset, rest.byteSize(), false);
    } else {
      for (long done = 0; done < rest.byteSize(); ) {
        long from = (offset + done) % windowBytes;
        long count = Math.min(rest.byteSize() - done, windowBytes - from);
        MemorySegment.copy(window((offset + done) / windowBytes), from, rest, done, count);
        done += count;
      }
    }
    target.position(target.limit());
  }

  /// The CRC32C of some of the file's bytes.
  ///
  /// @param from the offset of the first byte
  /// @param to the offset just past the last byte
  public int crc32c(long from, long to) {
    byte[] piece = new byte[(int) Math.min(LOCAL_WINDOW_BYTES, to - from)];
    int sum = Crc32c.OF_NOTHING;
    for (long at = from; at < to; ) {
      int step = (int) Math.min(piece.length, to - at);
      readFully(ByteBuffer.wrap(piece, 0, step), at);
      sum = Crc32c.combine(sum, Crc32c.of(MemorySegment.ofArray(piece).asSlice(0, step)), step);
      at += step;
    }
    return sum;
  }

  private MemorySegment window(long number) {
    for (int i = 0; i < WINDOWS; i++) {
      if (numbers[i] == number) {
        return Objects.requireNonNull(windows[i]);
      }
    }
    int place = next;
    next = (next + 1) % WINDOWS;
    MemorySegment window = windows[place];
    if (window == null) {
      window = arena.allocate(Math.min(windowBytes, length()));
      windows[place] = window;
    }
    long start = number * windowBytes;
    long bytes = Math.min(windowBytes, length() - start);
    numbers[place] = -1;
    boolean _ = file.read(window.asSlice(0, bytes), start, bytes, false);
    numbers[place] = number;
    return window;
  }

  @Override
  public void close() {
    try (file) {
      arena.close();
    }
  }
}
