package dev.gantry.formats.shards;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonWriter;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;

/// How samples are cut into shards, and how those are written. Immutable.
///
/// @param samplesPerShard samples of each shard but the last, or 0 for as many as `shardBytes` has
///     room for
/// @param shardBytes the size that a shard may have, unless one sample is larger. Not used where
///     `samplesPerShard` is given
/// @param blockBytes what one checksum is taken of, a multiple of 4096 up to 2³⁰
/// @param writers shards of a [ShardWriter] that are written at once, up to [#MOST_WRITERS]
/// @param metadata notes, in their order
/// @param write how files are written, always with checksums. A [ShardWriter] writes each by
///     itself: progress is told for each anew, on a thread of its own, and 0 threads are 1
public record ShardOptions(
    long samplesPerShard,
    long shardBytes,
    long blockBytes,
    int writers,
    SequencedMap<String, String> metadata,
    WriteOptions write) {
  public static final int MOST_WRITERS = 64;

  /// Batches count the samples that they take of a shard in an int.
  public static final int MOST_SAMPLES_PER_SHARD = Integer.MAX_VALUE;

  /// @throws MisuseException if a number is out of its range, or a note is no text that UTF-8 can
  ///     hold
  public ShardOptions {
    if (samplesPerShard < 0 || samplesPerShard > MOST_SAMPLES_PER_SHARD) {
      throw new MisuseException(
          "samples per shard must be 0 to " + MOST_SAMPLES_PER_SHARD + ": " + samplesPerShard);
    }
    if (shardBytes < 1) {
      throw new MisuseException("a shard must have room for 1 byte or more: " + shardBytes);
    }
    if (blockBytes < 1
        || blockBytes % ShardSet.PAGE_BYTES != 0
        || blockBytes > ShardSet.MAX_BLOCK_BYTES) {
      throw new MisuseException(
          "blocks must have a multiple of "
              + ShardSet.PAGE_BYTES
              + " bytes up to 2³⁰: "
              + blockBytes);
    }
    if (writers < 1 || writers > MOST_WRITERS) {
      throw new MisuseException("writers must be 1 to " + MOST_WRITERS + ": " + writers);
    }
    metadata = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(metadata));
    if (metadata.size() > JsonReader.MAX_NOTES) {
      throw new MisuseException(metadata.size() + " notes, more than " + JsonReader.MAX_NOTES);
    }
    metadata.forEach((key, text) -> {
      JsonWriter.requireText("a note's key", key);
      JsonWriter.requireText("the note '" + key + "'", text);
    });
    write = write.withChecksums(true);
  }

  /// Shards of 256 MiB, two of them written at once, a checksum a MiB, no notes; a new cancellation
  /// each time.
  public static ShardOptions defaults() {
    return new ShardOptions(
        0, 256L << 20, 1L << 20, 2, new LinkedHashMap<>(), WriteOptions.defaults());
  }

  public ShardOptions withSamplesPerShard(long chosen) {
    return new ShardOptions(chosen, shardBytes, blockBytes, writers, metadata, write);
  }

  /// Instead of a number of samples.
  public ShardOptions withShardBytes(long chosen) {
    return new ShardOptions(0, chosen, blockBytes, writers, metadata, write);
  }

  public ShardOptions withBlockBytes(long chosen) {
    return new ShardOptions(samplesPerShard, shardBytes, chosen, writers, metadata, write);
  }

  public ShardOptions withWriters(int chosen) {
    return new ShardOptions(samplesPerShard, shardBytes, blockBytes, chosen, metadata, write);
  }

  /// @param chosen in the order in which they are written, where it has one
  public ShardOptions withMetadata(Map<String, String> chosen) {
    return new ShardOptions(
        samplesPerShard, shardBytes, blockBytes, writers, new LinkedHashMap<>(chosen), write);
  }

  public ShardOptions withWrite(WriteOptions chosen) {
    return new ShardOptions(samplesPerShard, shardBytes, blockBytes, writers, metadata, chosen);
  }
}
