package dev.gantry.formats.tfrecord;

import java.nio.ByteBuffer;

/// What stands around a record's data: before it its length (u64, little endian) and the masked
/// checksum of those 8 bytes, behind it the masked checksum of the data.
public final class Framing {
  static final int LENGTH_BYTES = 8;
  static final int CRC_BYTES = 4;
  public static final int HEADER_BYTES = LENGTH_BYTES + CRC_BYTES;
  static final int BYTES = HEADER_BYTES + CRC_BYTES;

  private Framing() {}

  /// Whether the 12 bytes from `at` on are a header whose checksum is right.
  ///
  /// @param bytes little endian
  static boolean isHeader(ByteBuffer bytes, int at, MaskedCrc32c crc) {
    bytes.clear();
    int stored = bytes.getInt(at + LENGTH_BYTES);
    return crc.of(bytes, at, LENGTH_BYTES) == stored;
  }
}
