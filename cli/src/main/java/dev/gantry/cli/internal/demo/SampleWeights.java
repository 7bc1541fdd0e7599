// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import dev.gantry.cli.internal.output.Progress;
import dev.gantry.core.DType;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.DataFileOptions;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// A made-up checkpoint in the layout of a large language model: BF16 matrices with small F32
/// vectors between them in several shards, and one last shard that is F32 only.
///
/// @param index its `model.safetensors.index.json`
/// @param floatShard the shard that is F32 only
/// @param digests SHA-256 by tensor, of what was written
/// @param bytes of all tensors together
public record SampleWeights(Path index, Path floatShard, Map<String, String> digests, long bytes) {
  /// The least that [#write] can be asked for.
  public static final long LEAST_BYTES = 1 << 20;

  private static final long SEED = 20_261_121;
  private static final long LARGEST_SHARD_BYTES = 512_000_000;
  private static final int SMALLEST_SHARDS = 4;
  private static final int TENSORS_PER_SHARD = 8;
  private static final long COLUMNS = 1024;

  /// Writes the files into `folder`, and leaves them in the page cache.
  ///
  /// @param bytes how large it shall be, nearly
  public static SampleWeights write(Path folder, long bytes) {
    long shardBytes = Math.min(bytes / SMALLEST_SHARDS, LARGEST_SHARD_BYTES);
    int shards = Math.toIntExact((bytes + shardBytes / 2) / shardBytes);
    long matrixBytes = shardBytes / TENSORS_PER_SHARD;
    int layers = (shards - 1) * TENSORS_PER_SHARD;
    try (Arena arena = Arena.ofShared()) {
      RandomTensors random =
          new RandomTensors(arena, SEED, matrixBytes, 2L * layers + TENSORS_PER_SHARD);
      List<NewTensor> tensors = new ArrayList<>();
      try (Progress bar = new Progress("make", bytes)) {
        for (int i = 0; i < layers; i++) {
          bar.onProgress(i * matrixBytes, bytes);
          String layer = "layers." + i;
          tensors.add(random.make(layer + ".norm.weight", DType.F32, COLUMNS));
          tensors.add(matrix(random, layer + ".mlp.weight", DType.BF16, matrixBytes));
        }
        for (int i = 0; i < TENSORS_PER_SHARD; i++) {
          bar.onProgress((layers + i) * matrixBytes, bytes);
          tensors.add(matrix(random, "embeddings." + i, DType.F32, matrixBytes));
        }
      }
      // What the layers of one shard take, so that the embeddings begin another.
      long most =
          tensors.stream()
              .limit(2L * TENSORS_PER_SHARD)
              .mapToLong(tensor -> tensor.source().length())
              .sum();
      NewSafetensors made =
          NewSafetensors.folder(
              folder, tensors, Map.of(), DataFileOptions.defaults().withFileBytes(most));
      write(made);
      return new SampleWeights(
          made.index().orElseThrow().file(),
          made.dataFiles().getLast().file().file(),
          random.digests(),
          made.totalBytes());
    }
  }

  private static NewTensor matrix(RandomTensors random, String name, DType dtype, long bytes) {
    return random.make(name, dtype, bytes / (COLUMNS * dtype.bits() / Byte.SIZE), COLUMNS);
  }

  private static void write(NewSafetensors made) {
    try (Progress bar = new Progress("write", made.totalBytes())) {
      WriteOptions options = WriteOptions.defaults().withPageCache(true).withChecksums(false);
      made.write(GantrySession.shared(), options.withProgress(bar));
    }
  }
}
