// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.Crc32c;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.internal.store.SourceFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;

/// A file of any store, open for reading its metadata. For one thread.
public final class FileBytes implements AutoCloseable {
  private static final int LOCAL_WINDOW_BYTES = 64 << 10;

  /// A request for more takes little longer than one for less.
  private static final int REMOTE_WINDOW_BYTES = 1 << 20;

  private final SourceFile file;
  private final Arena arena = Arena.ofShared();
  private MemorySegment window = MemorySegment.NULL;
  private long windowStart;
  private long windowEnd;

  private FileBytes(SourceFile file) {
    this.file = file;
  }

  /// Opens a local file.
  ///
  /// @throws TransferException as [#open(Location)]
  /// @throws MalformedFileException as [#open(Location)]
  public static FileBytes open(Path file) {
    return open(Location.of(file));
  }

  /// @throws TransferException if the file cannot be opened, or is a directory
  /// @throws MalformedFileException of kind `not-a-regular-file` for a pipe, a socket or a device:
  ///     opening one may block for ever
  public static FileBytes open(Location file) {
    if (file instanceof Location.Local(Path path)) {
      requireRegular(path);
    }
    return new FileBytes(GantrySession.shared().openFile(file));
  }

  /// Looks at a file before it is opened.
  ///
  /// @throws TransferException if the file is not there, or is a directory
  /// @throws MalformedFileException of kind `not-a-regular-file`
  public static void requireRegular(Path file) {
    BasicFileAttributes attributes;
    try {
      attributes = Files.readAttributes(file, BasicFileAttributes.class);
    } catch (IOException e) {
      throw FileErrors.of("open", file.toString(), e);
    }
    if (attributes.isDirectory()) {
      throw FileErrors.isDirectory("open", file.toString());
    }
    if (!attributes.isRegularFile()) {
      throw new MalformedFileException(file, 0, "not-a-regular-file", "a pipe, socket or device");
    }
  }

  /// The file; of another store in the version that is open, so that what is read by way of this
  /// location later is of no other.
  public Location file() {
    return file.file() instanceof Location.Remote remote ? remote.at(file.identity()) : file.file();
  }

  /// The file's length in bytes when it was opened.
  public long length() {
    return file.size();
  }

  /// Fills `target` from `offset` on: direct buffers straight from the file, others by a window on
  /// it that reads ahead.
  ///
  /// @throws TransferException if a read fails, or the file has become too short meanwhile
  public void readFully(ByteBuffer target, long offset) {
    if (Thread.currentThread().isInterrupted()) {
      throw new TransferException("read", file().toString(), new Failure.Cancelled());
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
        moveWindow(offset + done);
        long from = offset + done - windowStart;
        long count = Math.min(rest.byteSize() - done, windowEnd - windowStart - from);
        MemorySegment.copy(window, from, rest, done, count);
        done += count;
      }
    }
    target.position(target.limit());
  }

  /// The CRC32C of some of the file's bytes.
  ///
  /// @param from offset of the first byte
  /// @param to offset just past the last
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

  private void moveWindow(long offset) {
    if (offset >= windowStart && offset < windowEnd) {
      return;
    }
    int most = file.isLocal() ? LOCAL_WINDOW_BYTES : REMOTE_WINDOW_BYTES;
    long bytes = Math.min(most, length() - offset);
    if (window.byteSize() < bytes) {
      window = arena.allocate(bytes);
    }
    windowEnd = windowStart;
    boolean _ = file.read(window.asSlice(0, bytes), offset, bytes, false);
    windowStart = offset;
    windowEnd = offset + bytes;
  }

  @Override
  public void close() {
    try (file) {
      arena.close();
    }
  }
}
