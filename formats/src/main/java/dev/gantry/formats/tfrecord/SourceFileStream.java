package dev.gantry.formats.tfrecord;

import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.store.SourceFile;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// A file as a stream of the JDK's, for a library that wants one. Does not own the file.
final class SourceFileStream extends InputStream {
  private static final int CHUNK_BYTES = 256 << 10;

  private final PlainSource source;
  private final HostSlab slab = HostSlab.allocate(CHUNK_BYTES);
  private int at;
  private int end;
  private boolean closed;

  SourceFileStream(SourceFile file) {
    source = new PlainSource(file, 0);
  }

  @Override
  public int read() {
    if (!fill()) {
      return -1;
    }
    return Byte.toUnsignedInt(slab.segment().get(ValueLayout.JAVA_BYTE, at++));
  }

  @Override
  public int read(byte[] target, int offset, int length) {
    if (length == 0) {
      return 0;
    }
    if (!fill()) {
      return -1;
    }
    int count = Math.min(length, end - at);
    MemorySegment.copy(slab.segment(), ValueLayout.JAVA_BYTE, at, target, offset, count);
    at += count;
    return count;
  }

  private boolean fill() {
    if (at == end) {
      int count = source.read(slab.segment());
      if (count == ByteSource.END) {
        return false;
      }
      at = 0;
      end = count;
    }
    return true;
  }

  @Override
  public int available() {
    return end - at;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      slab.release();
    }
  }
}
