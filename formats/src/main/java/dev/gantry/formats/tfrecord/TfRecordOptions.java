package dev.gantry.formats.tfrecord;

import java.util.Optional;

/// How TFRecord files are read.
///
/// @param compression empty to tell it from each file's first bytes: a header with a right checksum
///     is one of an uncompressed file, whatever else its bytes may look like
/// @param chunkBytes how much is read at a time; this much memory is taken, and more only for
///     records that are longer
/// @param mostRecordBytes the longest record that is read
public record TfRecordOptions(
    Optional<Compression> compression,
    CorruptionPolicy corruption,
    int chunkBytes,
    int mostRecordBytes) {
  /// The least and the most that is read at a time.
  public static final int LEAST_CHUNK_BYTES = 4 << 10;

  public static final int MOST_CHUNK_BYTES = 64 << 20;

  /// The longest record that can be asked for: a little less than protobuf's longest message, so
  /// that it fits one buffer with its framing.
  public static final int MOST_RECORD_BYTES = Integer.MAX_VALUE - (1 << 20);

  public TfRecordOptions {
    if (chunkBytes < LEAST_CHUNK_BYTES || chunkBytes > MOST_CHUNK_BYTES) {
      throw new IllegalArgumentException("chunks must be 4 KiB to 64 MiB: " + chunkBytes);
    }
    if (mostRecordBytes < 0 || mostRecordBytes > MOST_RECORD_BYTES) {
      throw new IllegalArgumentException(
          "records must have at most " + MOST_RECORD_BYTES + " bytes: " + mostRecordBytes);
    }
  }

  /// Compression as it is found, no fault passed over, chunks of 2 MiB, records of up to 1 GiB.
  public static TfRecordOptions defaults() {
    return new TfRecordOptions(Optional.empty(), new CorruptionPolicy.Fail(), 2 << 20, 1 << 30);
  }

  public TfRecordOptions withCompression(Compression known) {
    return new TfRecordOptions(Optional.of(known), corruption, chunkBytes, mostRecordBytes);
  }

  public TfRecordOptions withCorruption(CorruptionPolicy policy) {
    return new TfRecordOptions(compression, policy, chunkBytes, mostRecordBytes);
  }

  public TfRecordOptions withChunkBytes(int bytes) {
    return new TfRecordOptions(compression, corruption, bytes, mostRecordBytes);
  }

  public TfRecordOptions withMostRecordBytes(int bytes) {
    return new TfRecordOptions(compression, corruption, chunkBytes, bytes);
  }
}
