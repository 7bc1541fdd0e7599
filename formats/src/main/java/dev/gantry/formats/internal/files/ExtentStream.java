// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Extent;
import dev.gantry.formats.spi.FileBytes;
import java.io.InputStream;
import java.nio.ByteBuffer;

/// An extent of a file as a stream. It does not read ahead.
public final class ExtentStream extends InputStream {
  private final FileBytes bytes;
  private final Extent extent;
  private long position;

  public ExtentStream(FileBytes bytes, Extent extent) {
    this.bytes = bytes;
    this.extent = extent;
  }

  @Override
  public int read() {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : Byte.toUnsignedInt(one[0]);
  }

  @Override
  public int read(byte[] target, int from, int most) {
    if (position == extent.length()) {
      return -1;
    }
    int count = (int) Math.min(most, extent.length() - position);
    bytes.readFully(ByteBuffer.wrap(target, from, count), extent.offset() + position);
    position += count;
    return count;
  }

  @Override
  public long skip(long most) {
    long count = Math.clamp(most, 0, extent.length() - position);
    position += count;
    return count;
  }
}
