// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MalformedFileException;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// What stands around a record's data: before it its length (u64, little endian) and the masked
/// checksum of those 8 bytes, behind it the masked checksum of the data.
///
/// A masked checksum is a CRC32C, rotated and shifted, so that the checksum of bytes that contain
/// checksums is not weak. Not thread-safe: an instance keeps its CRC32C object from call to call.
final class Framing {
  static final int LENGTH_BYTES = 8;
  static final int CRC_BYTES = 4;
  static final int HEADER_BYTES = LENGTH_BYTES + CRC_BYTES;
  static final int BYTES = HEADER_BYTES + CRC_BYTES;

  private static final int MASK_DELTA = 0xa282ead8;

  private final CRC32C crc = new CRC32C();

  /// The masked checksum of `length` bytes from `from` on. Leaves the buffer's position and limit
  /// anywhere.
  int checksum(ByteBuffer bytes, int from, int length) {
    crc.reset();
    crc.update(bytes.limit(from + length).position(from));
    return mask((int) crc.getValue());
  }

  /// Whether the 12 bytes from `at` on are a header whose checksum is right.
  ///
  /// @param bytes little endian
  boolean isHeader(ByteBuffer bytes, int at) {
    bytes.clear();
    int stored = bytes.getInt(at + LENGTH_BYTES);
    return checksum(bytes, at, LENGTH_BYTES) == stored;
  }

  /// The length in a header; -1 where the header's checksum is wrong, or the length is more than any
  /// file has.
  ///
  /// @param bytes little endian
  long length(ByteBuffer bytes, int at) {
    boolean right = isHeader(bytes, at);
    return right ? Math.max(-1, bytes.clear().getLong(at)) : -1;
  }

  /// Whether the checksum of a record's data is right.
  ///
  /// @param bytes little endian, with all of the record
  /// @param at where its header begins
  boolean isData(ByteBuffer bytes, int at, int length) {
    int stored = bytes.clear().getInt(at + HEADER_BYTES + length);
    return checksum(bytes, at + HEADER_BYTES, length) == stored;
  }

  static int mask(int crc) {
    return Integer.rotateRight(crc, 15) + MASK_DELTA;
  }

  /// Makes the error of a record.
  @FunctionalInterface
  interface Fault {
    /// @param at where its header begins
    /// @param record its number among those at hand
    MalformedFileException of(int at, long record, String kind, String detail);
  }

  /// Compares both checksums of each of some records that lie end to end.
  ///
  /// @param bytes little endian, which the records are to fill
  void requireRecords(ByteBuffer bytes, Fault fault) {
    int end = bytes.capacity();
    long record = 0;
    for (int at = 0; at < end; record++) {
      long length = end - at < BYTES ? -1 : length(bytes, at);
      if (length < 0 || length > end - at - BYTES) {
        throw fault.of(
            at, record, TfRecordReader.LENGTH_CRC, "it is not where it was: the file has changed");
      }
      if (!isData(bytes, at, (int) length)) {
        throw fault.of(at, record, TfRecordReader.DATA_CRC, wrongData((int) length));
      }
      at += (int) length + BYTES;
    }
  }

  static String wrongData(int length) {
    return "the checksum of its " + length + " bytes is wrong";
  }
}
