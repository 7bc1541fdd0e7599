package dev.gantry.formats.tfrecord;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// TFRecord's checksum: CRC32C, rotated and shifted, so that the checksum of bytes with checksums
/// among them is no weak one. Not thread-safe: it keeps the sum's object from call to call.
final class MaskedCrc32c {
  private static final int DELTA = 0xa282ead8;

  private final CRC32C crc = new CRC32C();

  /// Of `length` bytes from `from` on. Leaves the buffer's position and limit anywhere.
  int of(ByteBuffer bytes, int from, int length) {
    crc.reset();
    crc.update(bytes.limit(from + length).position(from));
    return mask((int) crc.getValue());
  }

  static int mask(int crc) {
    return Integer.rotateRight(crc, 15) + DELTA;
  }
}
