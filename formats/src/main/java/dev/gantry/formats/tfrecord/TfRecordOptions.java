// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.source.ByteWindow;
import java.util.Optional;

/// How TFRecord files are read.
///
/// @param compression empty to tell it from each file's first bytes: a header with a right checksum
///     is one of an uncompressed file, whatever else its bytes may look like
/// @param chunkBytes how much is read at a time, of remote files at least 8 MiB; this much memory is
///     taken, and more only for records that are longer
/// @param mostRecordBytes the longest record that is read
/// @param mostBatchBytes what the records of one batch may have together, of streams
/// @param shuffleRecords how many records a stream's shuffle buffer holds
/// @param shuffleBytes what these may have together, but for one record
public record TfRecordOptions(
    Optional<Compression> compression,
    CorruptionPolicy corruption,
    int chunkBytes,
    int mostRecordBytes,
    long mostBatchBytes,
    int shuffleRecords,
    long shuffleBytes) {
  /// The fewest bytes that are read at a time.
  public static final int LEAST_CHUNK_BYTES = ByteWindow.LEAST_CHUNK_BYTES;

  /// The most bytes that are read at a time.
  public static final int MAX_CHUNK_BYTES = 64 << 20;

  /// The longest record that can be asked for: a little less than protobuf's longest message, so
  /// that it fits one buffer with its framing.
  public static final int MAX_RECORD_BYTES = Integer.MAX_VALUE - (1 << 20);

  /// The most records that a shuffle buffer may hold. Each takes some 100 bytes of heap.
  public static final int MAX_SHUFFLE_RECORDS = 1 << 24;

  private static final long MAX_BYTES = 1L << 40;

  public TfRecordOptions {
    MisuseException.requireRange("chunkBytes", chunkBytes, LEAST_CHUNK_BYTES, MAX_CHUNK_BYTES);
    MisuseException.requireRange("mostRecordBytes", mostRecordBytes, 0, MAX_RECORD_BYTES);
    MisuseException.requireRange("mostBatchBytes", mostBatchBytes, 1, MAX_BYTES);
    MisuseException.requireRange("shuffleRecords", shuffleRecords, 1, MAX_SHUFFLE_RECORDS);
    MisuseException.requireRange("shuffleBytes", shuffleBytes, 1, MAX_BYTES);
  }

  /// Compression as it is found, no fault passed over, chunks of 2 MiB, records of up to 1 GiB, and
  /// so many of them a batch; a shuffle buffer of up to 65,536 records and 256 MiB.
  public static TfRecordOptions defaults() {
    return new TfRecordOptions(
        Optional.empty(),
        new CorruptionPolicy.Fail(),
        2 << 20,
        1 << 30,
        1L << 30,
        1 << 16,
        256L << 20);
  }

  /// Returns these options for files of a known compression, so that it is not detected.
  public TfRecordOptions withCompression(Compression known) {
    return new TfRecordOptions(
        Optional.of(MisuseException.requireGiven("withCompression", known)),
        corruption,
        chunkBytes,
        mostRecordBytes,
        mostBatchBytes,
        shuffleRecords,
        shuffleBytes);
  }

  /// Returns these options with another rule for files whose framing is broken.
  public TfRecordOptions withCorruption(CorruptionPolicy policy) {
    return new TfRecordOptions(
        compression,
        MisuseException.requireGiven("withCorruption", policy),
        chunkBytes,
        mostRecordBytes,
        mostBatchBytes,
        shuffleRecords,
        shuffleBytes);
  }

  /// Returns these options with another number of bytes that are read at a time.
  ///
  /// @throws MisuseException unless they are from 4 KiB to 64 MiB
  public TfRecordOptions withChunkBytes(int bytes) {
    return new TfRecordOptions(
        compression,
        corruption,
        bytes,
        mostRecordBytes,
        mostBatchBytes,
        shuffleRecords,
        shuffleBytes);
  }

  /// Returns these options with another bound of a record, in bytes; a longer record is an error.
  public TfRecordOptions withMostRecordBytes(int bytes) {
    return new TfRecordOptions(
        compression, corruption, chunkBytes, bytes, mostBatchBytes, shuffleRecords, shuffleBytes);
  }

  /// Returns these options with another bound of the records of one batch together, in bytes.
  public TfRecordOptions withMostBatchBytes(long bytes) {
    return new TfRecordOptions(
        compression, corruption, chunkBytes, mostRecordBytes, bytes, shuffleRecords, shuffleBytes);
  }

  /// Returns these options with another shuffle buffer. The more of an epoch the buffer holds, the better it mixes. It is
  /// filled before an epoch's first batch. Records of up to 2 KiB, and those of compressed files, take one and a half times their
  /// bytes of the CPU's memory; others are read when a batch has them.
  public TfRecordOptions withShuffleBuffer(int records, long bytes) {
    return new TfRecordOptions(
        compression, corruption, chunkBytes, mostRecordBytes, mostBatchBytes, records, bytes);
  }
}
