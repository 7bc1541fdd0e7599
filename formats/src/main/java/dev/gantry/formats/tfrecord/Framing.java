// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.checksum.Crc32c;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.zip.CRC32C;

/// Checks the framing of records. Before a record's data come its length (u64, little endian) and
/// the masked checksum of these 8 bytes; after the data comes the data's masked checksum.
///
/// Not thread-safe: an instance keeps its CRC32C object from call to call.
final class Framing {
  static final int LENGTH_BYTES = 8;
  static final int CRC_BYTES = 4;
  static final int HEADER_BYTES = LENGTH_BYTES + CRC_BYTES;
  static final int BYTES = HEADER_BYTES + CRC_BYTES;

  private static final String MOVED = "it is not where it was: the file has changed";

  private final CRC32C crc = new CRC32C();

  /// Computes the masked checksum of `length` bytes from `from` on. The buffer's position and
  /// limit are undefined afterwards.
  int checksum(ByteBuffer bytes, int from, int length) {
    crc.reset();
    crc.update(bytes.limit(from + length).position(from));
    return Crc32c.masked((int) crc.getValue());
  }

  /// Returns whether the 12 bytes from `at` on are a header whose checksum is right.
  ///
  /// @param bytes little endian
  boolean isHeader(ByteBuffer bytes, int at) {
    bytes.clear();
    int stored = bytes.getInt(at + LENGTH_BYTES);
    return checksum(bytes, at, LENGTH_BYTES) == stored;
  }

  /// Returns the record length that a header states, in bytes; -1 if the header's checksum is
  /// wrong, or the length is larger than any file.
  ///
  /// @param bytes little endian
  long length(ByteBuffer bytes, int at) {
    boolean right = isHeader(bytes, at);
    return right ? Math.max(-1, bytes.clear().getLong(at)) : -1;
  }

  /// Returns whether the checksum of a record's data is right.
  ///
  /// @param bytes a little-endian buffer with the whole record
  /// @param at where its header begins
  boolean isData(ByteBuffer bytes, int at, int length) {
    int stored = bytes.clear().getInt(at + HEADER_BYTES + length);
    return checksum(bytes, at + HEADER_BYTES, length) == stored;
  }

  /// Makes the error for a damaged record.
  @FunctionalInterface
  interface Fault {
    /// @param at where its header begins
    /// @param record the record's number among the records that are checked together
    MalformedFileException of(int at, long record, String kind, String detail);
  }

  /// Compares both checksums of each record in a buffer of records that lie end to end.
  ///
  /// @param bytes a little-endian buffer, which the records must fill
  void requireContiguousRecords(ByteBuffer bytes, Fault fault) {
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

  /// Compares both checksums of one record that lies in several pieces of memory.
  ///
  /// @param pieces the pieces, which together are the whole record; the first has the header, and
  ///     the last has the checksum of the data
  void requireScatteredRecord(List<MemorySegment> pieces, Fault fault) {
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
