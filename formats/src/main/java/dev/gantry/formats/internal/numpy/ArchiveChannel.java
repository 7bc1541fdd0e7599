// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.NonWritableChannelException;
import java.nio.channels.SeekableByteChannel;

/// A file as a channel for the ZIP reader of Commons Compress. It refuses a central directory longer than
/// any real one, so that none can fill the heap.
final class ArchiveChannel implements SeekableByteChannel {
  private static final long MAX_BYTES = 32 << 20;

  private final FileBytes bytes;
  private long position;
  private long read;
  private boolean open = true;

  ArchiveChannel(FileBytes bytes) {
    this.bytes = bytes;
  }

  @Override
  public int read(ByteBuffer target) throws IOException {
    if (position >= bytes.length()) {
      return -1;
    }
    int count = (int) Math.min(target.remaining(), bytes.length() - position);
    read += count;
    if (read > MAX_BYTES) {
      throw new IOException("the directory has more than " + MAX_BYTES + " bytes");
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
    return bytes.length();
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
