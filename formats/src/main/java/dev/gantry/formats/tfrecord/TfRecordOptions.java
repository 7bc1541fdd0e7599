// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.source.ByteWindow;
import java.util.Optional;

/// Says how TFRecord files are read. Immutable.
///
/// @param compression the compression of all files; if empty, each file's first bytes decide: a
///     file that begins with a record's header with a right checksum is uncompressed, whatever
///     else these bytes may look like
/// @param chunkBytes how many bytes one read takes; for remote files it takes at least 8 MiB. A
///     reader takes this much memory, and more only for longer records
/// @param mostRecordBytes the longest record that is read, in bytes; a longer record is an error
/// @param mostBatchBytes how many bytes the records of one batch of a stream may have together
/// @param shuffleRecords how many records a stream's shuffle buffer holds
/// @param shuffleBytes how many bytes these records may have together, unless it is a single
///     record
public record TfRecordOptions(
    Optional<Compression> compression,
    CorruptionPolicy corruption,
    int chunkBytes,
    int mostRecordBytes,
    long mostBatchBytes,
    int shuffleRecords,
    long shuffleBytes) {
  /// The fewest bytes that one read may take.
  public static final int LEAST_CHUNK_BYTES = ByteWindow.LEAST_CHUNK_BYTES;

  /// The most bytes that one read may take.
  public static final int MAX_CHUNK_BYTES = 64 << 20;

  /// The largest bound on a record's length: a little less than protobuf's longest message, so
  /// that a record with its framing fits one buffer.
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

  /// Detects the compression, skips no fault, reads 2 MiB at a time, and takes records of up to 1
  /// GiB and batches of up to 1 GiB of records. The shuffle buffer holds up to 65,536 records and
  /// 256 MiB.
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

  /// Returns these options with another policy for files whose framing is broken.
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

  /// Returns these options with another number of bytes for each read.
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

  /// Returns these options with another bound on a record's length, in bytes; a longer record is
  /// an error.
  public TfRecordOptions withMostRecordBytes(int bytes) {
    return new TfRecordOptions(
        compression, corruption, chunkBytes, bytes, mostBatchBytes, shuffleRecords, shuffleBytes);
  }

  /// Returns these options with another bound on the total length of one batch's records, in
  /// bytes.
  public TfRecordOptions withMostBatchBytes(long bytes) {
    return new TfRecordOptions(
        compression, corruption, chunkBytes, mostRecordBytes, bytes, shuffleRecords, shuffleBytes);
  }

  /// Returns these options with another shuffle buffer. The larger the part of an epoch that the
  /// buffer holds, the better it mixes. It is filled before an epoch's first batch. Records of up
  /// to 2 KiB and all records of compressed files take one and a half times their bytes of the
  /// CPU's memory; longer records are read only when a batch takes them.
  public TfRecordOptions withShuffleBuffer(int records, long bytes) {
    return new TfRecordOptions(
        compression, corruption, chunkBytes, mostRecordBytes, mostBatchBytes, records, bytes);
  }
}
