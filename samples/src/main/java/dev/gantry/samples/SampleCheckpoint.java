package dev.gantry.samples;

import dev.gantry.core.DType;
import dev.gantry.core.Shape;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.atomic.AtomicLong;

/// A made-up checkpoint in the layout of a large language model: BF16 matrices with small F32
/// vectors between them in several shards, and one last shard that is F32 only.
///
/// @param index its `model.safetensors.index.json`
/// @param floatShard the shard that is F32 only
/// @param digests SHA-256 by tensor, of what was written
/// @param bytes of all tensors together
record SampleCheckpoint(Path index, Path floatShard, Map<String, String> digests, long bytes) {
  /// The least that [#write] can be asked for.
  static final long LEAST_BYTES = 1 << 20;

  private static final long SEED = 20_261_121;
  private static final long LARGEST_SHARD_BYTES = 512_000_000;
  private static final int SMALLEST_SHARDS = 4;
  private static final int TENSORS_PER_SHARD = 8;
  private static final long COLUMNS = 1024;

  /// Writes the files into `folder`.
  ///
  /// @param bytes how large it shall be, nearly
  static SampleCheckpoint write(Path folder, long bytes) throws IOException {
    long shardBytes = Math.min(bytes / SMALLEST_SHARDS, LARGEST_SHARD_BYTES);
    int count = Math.toIntExact((bytes + shardBytes / 2) / shardBytes);
    SequencedMap<String, List<ShardWriter.Tensor>> shards = new LinkedHashMap<>();
    for (int number = 1; number <= count; number++) {
      shards.put(
          String.format(Locale.ROOT, "model-%05d-of-%05d.safetensors", number, count),
          number < count ? layers(number, shardBytes) : embeddings(shardBytes));
    }
    long total =
        shards.values().stream().flatMap(List::stream).mapToLong(ShardWriter.Tensor::bytes).sum();
    Map<String, String> digests = new LinkedHashMap<>();
    try (Progress bar = new Progress("make", total)) {
      AtomicLong done = new AtomicLong();
      ShardWriter writer =
          new ShardWriter(SEED, more -> bar.onProgress(done.addAndGet(more), total));
      for (var shard : shards.entrySet()) {
        digests.putAll(writer.write(folder.resolve(shard.getKey()), shard.getValue()));
      }
    }
    return new SampleCheckpoint(
        ShardWriter.writeIndex(folder, shards),
        folder.resolve(shards.lastEntry().getKey()),
        digests,
        total);
  }

  private static List<ShardWriter.Tensor> layers(int shard, long shardBytes) {
    List<ShardWriter.Tensor> tensors = new ArrayList<>();
    for (int i = 0; i < TENSORS_PER_SHARD; i++) {
      String layer = "layers." + ((shard - 1) * TENSORS_PER_SHARD + i);
      tensors.add(new ShardWriter.Tensor(layer + ".norm.weight", DType.F32, Shape.of(COLUMNS)));
      tensors.add(matrix(layer + ".mlp.weight", DType.BF16, shardBytes / TENSORS_PER_SHARD));
    }
    return tensors;
  }

  private static List<ShardWriter.Tensor> embeddings(long shardBytes) {
    List<ShardWriter.Tensor> tensors = new ArrayList<>();
    for (int i = 0; i < TENSORS_PER_SHARD; i++) {
      tensors.add(matrix("embeddings." + i, DType.F32, shardBytes / TENSORS_PER_SHARD));
    }
    return tensors;
  }

  private static ShardWriter.Tensor matrix(String name, DType dtype, long bytes) {
    long rowBytes = COLUMNS * dtype.bits() / Byte.SIZE;
    return new ShardWriter.Tensor(name, dtype, Shape.of(Math.max(1, bytes / rowBytes), COLUMNS));
  }
}
