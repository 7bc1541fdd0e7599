// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonWriter;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeMap;

/// Says how samples are split into shards, and how the shards are written. Immutable.
public final class ShardOptions {
  /// The most shards of a [ShardWriter] that are written at once.
  public static final int MAX_WRITERS = 64;

  /// The most samples of a shard, since batches count a shard's samples in an `int`.
  public static final int MAX_SAMPLES_PER_SHARD = Integer.MAX_VALUE;

  final long samplesPerShard;
  final long shardBytes;
  final long blockBytes;
  final int writers;
  final SequencedMap<String, String> metadata;
  final WriteOptions write;

  private ShardOptions(
      long samplesPerShard,
      long shardBytes,
      long blockBytes,
      int writers,
      SequencedMap<String, String> metadata,
      WriteOptions write) {
    this.samplesPerShard = samplesPerShard;
    this.shardBytes = shardBytes;
    this.blockBytes = blockBytes;
    this.writers = writers;
    this.metadata = metadata;
    this.write = write;
  }

  /// Shards of 256 MiB, two of them written at once, a checksum for each MiB, no notes. Each call makes a
  /// new cancellation.
  public static ShardOptions defaults() {
    return new ShardOptions(
        0, 256L << 20, 1L << 20, 2, new LinkedHashMap<>(), WriteOptions.defaults());
  }

  /// Sets the number of samples of each shard except the last.
  ///
  /// @param samples how many, up to [#MAX_SAMPLES_PER_SHARD]; 0 for as many as fit the shard's size
  public ShardOptions withSamplesPerShard(long samples) {
    MisuseException.requireRange("withSamplesPerShard", samples, 0, MAX_SAMPLES_PER_SHARD);
    return new ShardOptions(samples, shardBytes, blockBytes, writers, metadata, write);
  }

  /// Sets the largest size of a shard in bytes, unless one sample is larger. It replaces a number of
  /// samples.
  public ShardOptions withShardBytes(long bytes) {
    MisuseException.requireRange("withShardBytes", bytes, 1, Long.MAX_VALUE);
    return new ShardOptions(0, bytes, blockBytes, writers, metadata, write);
  }

  /// Sets how many bytes have one checksum: a multiple of 4096, up to 2³⁰.
  public ShardOptions withBlockBytes(long bytes) {
    PlanLimits.requireBlocks("withBlockBytes", bytes, ShardSet.MAX_BLOCK_BYTES);
    return new ShardOptions(samplesPerShard, shardBytes, bytes, writers, metadata, write);
  }

  /// Sets how many shards a [ShardWriter] writes at once, up to [#MAX_WRITERS].
  public ShardOptions withWriters(int count) {
    MisuseException.requireRange("withWriters", count, 1, MAX_WRITERS);
    return new ShardOptions(samplesPerShard, shardBytes, blockBytes, count, metadata, write);
  }

  /// Sets notes for readers.
  ///
  /// @param notes the notes, written in the map's order, or by their keys if the map has no order
  /// @throws MisuseException if a note cannot be encoded in UTF-8, or there are too many notes
  public ShardOptions withMetadata(Map<String, String> notes) {
    MisuseException.requireGiven("withMetadata", notes);
    MisuseException.requireRange("withMetadata: notes", notes.size(), 0, JsonReader.MAX_NOTES);
    notes.forEach((key, text) -> {
      JsonWriter.requireText("a note's key", key);
      JsonWriter.requireText("the note '" + key + "'", text);
    });
    return new ShardOptions(
        samplesPerShard,
        shardBytes,
        blockBytes,
        writers,
        // The order of Map.of differs from process to process.
        Collections.unmodifiableSequencedMap(
            notes instanceof SequencedMap ? new LinkedHashMap<>(notes) : new TreeMap<>(notes)),
        write);
  }

  /// Sets a listener that is told how many bytes were written. A [ShardWriter] counts each shard from 0,
  /// and calls the listener on its own threads.
  public ShardOptions withProgress(ProgressListener listener) {
    return withWrite(write.withProgress(MisuseException.requireGiven("withProgress", listener)));
  }

  /// Sets a cancellation that ends the write early; there is no dataset then.
  public ShardOptions withCancellation(Cancellation cancellation) {
    return withWrite(
        write.withCancellation(MisuseException.requireGiven("withCancellation", cancellation)));
  }

  /// Sets how each file is written, always with checksums. For 0 threads a [ShardWriter] uses 1.
  ShardOptions withWrite(WriteOptions chosen) {
    return new ShardOptions(
        samplesPerShard, shardBytes, blockBytes, writers, metadata, chosen.withChecksums(true));
  }
}
