// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.checksum.Crc32c;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.zip.CRC32C;

/// The framing of a record: its length (u64, little endian) and the masked checksum of those 8
/// bytes stand before its data, and the masked checksum of the data stands behind them.
///
/// Not thread-safe: an instance keeps its CRC32C object from call to call.
final class Framing {
  static final int LENGTH_BYTES = 8;
  static final int CRC_BYTES = 4;
  static final int HEADER_BYTES = LENGTH_BYTES + CRC_BYTES;
  static final int BYTES = HEADER_BYTES + CRC_BYTES;

  private static final String MOVED = "it is not where it was: the file has changed";

  private final CRC32C crc = new CRC32C();

  /// The masked checksum of `length` bytes from `from` on. Leaves the buffer's position and limit
  /// anywhere.
  int checksum(ByteBuffer bytes, int from, int length) {
    crc.reset();
    crc.update(bytes.limit(from + length).position(from));
    return Crc32c.masked((int) crc.getValue());
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
        throw fault.of(at, record, TfRecordReader.LENGTH_CRC, MOVED);
      }
      if (!isData(bytes, at, (int) length)) {
        throw fault.of(at, record, TfRecordReader.DATA_CRC, wrongData((int) length));
      }
      at += (int) length + BYTES;
    }
  }

  /// Compares both checksums of one record that lies in pieces.
  ///
  /// @param pieces together the whole record; the first has its header, the last the checksum of its data
  void requireRecord(List<MemorySegment> pieces, Fault fault) {
    List<ByteBuffer> buffers =
        pieces.stream().map(each -> each.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN)).toList();
    int bytes = buffers.stream().mapToInt(ByteBuffer::capacity).reduce(0, Math::addExact);
    ByteBuffer last = buffers.getLast();
    int stored = last.getInt(last.limit() - CRC_BYTES);
    if (length(buffers.getFirst(), 0) != bytes - BYTES) {
      throw fault.of(0, 0, TfRecordReader.LENGTH_CRC, MOVED);
    }
    buffers.getFirst().clear().position(HEADER_BYTES);
    last.limit(last.capacity() - CRC_BYTES);
    crc.reset();
    buffers.forEach(crc::update);
    if (Crc32c.masked((int) crc.getValue()) != stored) {
      throw fault.of(0, 0, TfRecordReader.DATA_CRC, wrongData(bytes - BYTES));
    }
  }

  static String wrongData(int length) {
    return "the checksum of its " + length + " bytes is wrong";
  }
}
