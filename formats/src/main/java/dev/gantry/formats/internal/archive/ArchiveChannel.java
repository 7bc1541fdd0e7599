// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.archive;

import dev.gantry.core.Extent;
import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.NonWritableChannelException;
import java.nio.channels.SeekableByteChannel;

/// Some bytes of a file as a channel, for the ZIP reader of Commons Compress and for streams of compressed
/// bytes.
public final class ArchiveChannel implements SeekableByteChannel {
  private final FileBytes bytes;
  private final Extent extent;
  private final long most;
  private long position;
  private long read;
  private boolean open = true;

  /// @param extent the bytes, which the channel counts from 0
  /// @param most the most bytes that may be read, however often
  public ArchiveChannel(FileBytes bytes, Extent extent, long most) {
    this.bytes = bytes;
    this.extent = extent;
    this.most = most;
  }

  @Override
  public int read(ByteBuffer target) throws IOException {
    if (position >= extent.length()) {
      return -1;
    }
    int count = (int) Math.min(target.remaining(), extent.length() - position);
    read += count;
    if (read > most) {
      throw new IOException("the directory has more than " + most + " bytes");
    }
    ByteBuffer part = target.slice(target.position(), count);
    bytes.readFully(part, extent.offset() + position);
    target.position(target.position() + count);
    position += count;
    return count;
  }

  @Override
  public long position() {
    return position;
  }

  @Override
  public SeekableByteChannel position(long chosen) throws IOException {
    if (chosen < 0) {
      throw new IOException("the archive refers to a negative offset");
    }
    position = chosen;
    return this;
  }

  @Override
  public long size() {
    return extent.length();
  }

  @Override
  public boolean isOpen() {
    return open;
  }

  @Override
  public void close() {
    open = false;
  }

  @Override
  public int write(ByteBuffer source) {
    throw new NonWritableChannelException();
  }

  @Override
  public SeekableByteChannel truncate(long size) {
    throw new NonWritableChannelException();
  }
}
