// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.NonWritableChannelException;
import java.nio.channels.SeekableByteChannel;

/// A file as a channel, for the ZIP reader of Commons Compress and for streams of compressed bytes.
final class ArchiveChannel implements SeekableByteChannel {
  private final FileBytes bytes;
  private final long end;
  private final long most;
  private long position;
  private long read;
  private boolean open = true;

  /// @param end the file offset at which the channel ends
  /// @param most the most bytes that may be read, however often
  ArchiveChannel(FileBytes bytes, long position, long end, long most) {
    this.bytes = bytes;
    this.position = position;
    this.end = end;
    this.most = most;
  }

  @Override
  public int read(ByteBuffer target) throws IOException {
    if (position >= end) {
      return -1;
    }
    int count = (int) Math.min(target.remaining(), end - position);
    read += count;
    if (read > most) {
      throw new IOException("the directory has more than " + most + " bytes");
    }
    ByteBuffer part = target.slice(target.position(), count);
    bytes.readFully(part, position);
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
    return end;
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
