// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/// Presents a record's bytes as a stream, which skips without reading. For one thread.
final class MemoryStream extends InputStream {
  private final MemorySegment bytes;
  private long at;

  MemoryStream(MemorySegment bytes) {
    this.bytes = bytes;
  }

  @Override
  public int available() {
    return Math.clamp(bytes.byteSize() - at, 0, Integer.MAX_VALUE);
  }

  @Override
  public int read() {
    return at == bytes.byteSize() ? -1 : bytes.get(ValueLayout.JAVA_BYTE, at++) & 0xff;
  }

  @Override
  public int read(byte[] target, int offset, int length) {
    int count = Math.min(Objects.checkIndex(length, Integer.MAX_VALUE), available());
    MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, at, target, offset, count);
    at += count;
    return count == 0 && length > 0 ? -1 : count;
  }

  @Override
  public long skip(long count) {
    long skipped = Math.clamp(count, 0, bytes.byteSize() - at);
    at += skipped;
    return skipped;
  }
}
