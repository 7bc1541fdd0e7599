// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.MalformedFileException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/// Reads little-endian values in order, through one small buffer. Subclasses make the errors of
/// their format. Not thread-safe.
public abstract class SequentialInput implements AutoCloseable {
  /// The most memory that an input's values may take: some thousand bytes for each tensor of the
  /// largest models.
  private static final long MAX_VALUE_BYTES = 192 << 20;

  private final InputStream stream;
  private final long length;

  /// The bytes that were read from the stream last.
  private final byte[] window = new byte[8 << 10];

  private int windowBytes;
  private int windowTaken;

  /// How many of the stream's bytes come before the window.
  private long before;

  /// The estimated heap bytes of all values that were made.
  private long used;

  /// @param length how many bytes the stream should have; no byte after these is read
  protected SequentialInput(InputStream stream, long length) {
    this.stream = stream;
    this.length = length;
  }

  /// Returns the error for an input that ends within a value.
  ///
  /// @param count the size of the value in bytes, as an unsigned number
  protected abstract MalformedFileException pastEnd(long count);

  /// Returns the error for an input whose values take too much memory.
  ///
  /// @param most how many bytes they may take
  protected abstract MalformedFileException tooLarge(long most);

  /// Returns the error for bytes that the stream cannot read.
  protected RuntimeException damaged(IOException cause) {
    return new UncheckedIOException(cause);
  }

  /// Counts the memory of values before they are made, and throws if it exceeds the bound.
  public final void charge(long bytes) {
    used += bytes;
    if (used > MAX_VALUE_BYTES) {
      throw tooLarge(MAX_VALUE_BYTES);
    }
  }

  /// How many bytes were read or skipped.
  protected final long taken() {
    return before + windowTaken;
  }

  /// How many bytes are left.
  public final long remaining() {
    return length - taken();
  }

  /// Reads a byte as an unsigned number.
  public final int read() {
    requireWindow();
    return Byte.toUnsignedInt(window[windowTaken++]);
  }

  /// Reads the next window if all bytes of this one were taken.
  private void requireWindow() {
    if (windowTaken < windowBytes) {
      return;
    }
    requireRemaining(1);
    before += windowBytes;
    windowTaken = 0;
    try {
      windowBytes = stream.readNBytes(window, 0, (int) Math.min(window.length, length - before));
    } catch (IOException e) {
      throw damaged(e);
    }
    if (windowBytes == 0) {
      throw pastEnd(1);
    }
  }

  /// Reads a number of at most eight bytes. The number is unsigned if it has fewer than eight
  /// bytes.
  public final long number(int bytes) {
    requireRemaining(bytes);
    long value = 0;
    for (int i = 0; i < bytes; i++) {
      value |= (long) read() << (i * Byte.SIZE);
    }
    return value;
  }

  /// Reads `count` bytes, where the count comes from the file. Memory is allocated only if the
  /// input should have as many bytes left.
  public final byte[] bytes(long count) {
    requireRemaining(count);
    byte[] bytes = new byte[Math.toIntExact(count)];
    for (int done = 0; done < bytes.length; ) {
      requireWindow();
      int step = Math.min(bytes.length - done, windowBytes - windowTaken);
      System.arraycopy(window, windowTaken, bytes, done, step);
      windowTaken += step;
      done += step;
    }
    return bytes;
  }

  /// Skips bytes.
  public final void skip(long count) {
    requireRemaining(count);
    long here = Math.min(count, windowBytes - windowTaken);
    windowTaken += (int) here;
    try {
      stream.skipNBytes(count - here);
      before += count - here;
    } catch (EOFException _) {
      throw pastEnd(count);
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  private void requireRemaining(long count) {
    if (count < 0 || count > remaining()) {
      throw pastEnd(count);
    }
  }

  @Override
  public final void close() {
    try {
      stream.close();
    } catch (IOException e) {
      throw damaged(e);
    }
  }
}
