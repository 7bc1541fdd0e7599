package dev.gantry.formats.internal;

import dev.gantry.core.MalformedFileException;
import java.nio.ByteBuffer;

/// The bytes of one section of a file, in order, through one small buffer. Not thread-safe.
final class ByteCursor {
  /// What [#peek] and [#take] give past the section's last byte.
  static final int END = -1;

  private static final int BUFFER_BYTES = 64 * 1024;

  private final FileBytes source;
  private final long end;
  private final byte[] buffer = new byte[BUFFER_BYTES];
  private long bufferedTo;
  private int next;
  private int limit;

  /// @param from file offset of the section's first byte
  /// @param to file offset just past its last
  ByteCursor(FileBytes source, long from, long to) {
    this.source = source;
    this.bufferedTo = from;
    this.end = to;
  }

  /// The next byte as 0 to 255, which stays; or [#END].
  int peek() {
    return next < limit || fill() ? buffer[next] & 0xFF : END;
  }

  /// The next byte as 0 to 255, which is consumed; or [#END].
  int take() {
    return next < limit || fill() ? buffer[next++] & 0xFF : END;
  }

  /// Moves plain characters of a JSON string (ASCII, no quote, backslash or control character) to
  /// `target` from `at` on, as far as it has room and as they lie in the buffer. Most of a header
  /// is such runs.
  ///
  /// @return how many were moved, possibly none though some follow
  int takePlain(byte[] target, int at) {
    int most = Math.min(limit - next, target.length - at);
    int count = 0;
    while (count < most && isPlain(buffer[next + count])) {
      count++;
    }
    System.arraycopy(buffer, next, target, at, count);
    next += count;
    return count;
  }

  private static boolean isPlain(byte b) {
    return b >= 0x20 && b != '"' && b != '\\';
  }

  /// The file offset of the next byte.
  long offset() {
    return bufferedTo - (limit - next);
  }

  MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(source.file(), offset, kind, detail);
  }

  private boolean fill() {
    int count = (int) Math.min(BUFFER_BYTES, end - bufferedTo);
    if (count <= 0) {
      return false;
    }
    source.readFully(ByteBuffer.wrap(buffer, 0, count), bufferedTo);
    bufferedTo += count;
    next = 0;
    limit = count;
    return true;
  }
}
