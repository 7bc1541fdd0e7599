// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.ShardDataset;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/// Batches of NDArrays on the CPU out of raw shards: ours, and DJL's `RandomAccessDataset` with its
/// `StackBatchifier`, which reads the same bytes sample by sample. A batch counts when its arrays
/// are there, and is closed at once.
final class ShardBench {
  private static final int BATCH_SIZE = 256;
  private static final int CACHED_BYTES = 2 << 20;

  private final GantrySession session;
  private final Path folder;
  private final ShardSet shards;

  ShardBench(GantrySession session, Path folder) {
    this.session = session;
    this.folder = folder;
    this.shards = ShardSet.open(folder);
  }

  /// Makes the batches of an epoch.
  @FunctionalInterface
  private interface Epoch {
    void run(BatchSink sink) throws Exception;
  }

  @FunctionalInterface
  private interface BatchSink {
    void accept(Batch batch);
  }

  private record Way(String name, Epoch epoch) {}

  void run(int turns) throws Exception {
    List<Way> ways =
        List.of(
            new Way("gantry, file order", sink -> gantry(new Shuffle.None(), sink)),
            new Way("DJL, sequential", sink -> djl(false, 0, sink)),
            new Way("DJL, sequential, 2 threads ahead", sink -> djl(false, 2, sink)),
            new Way("gantry, blocks of 32", sink -> gantry(new Shuffle.Blocks(1, 32), sink)),
            new Way("gantry, single samples", sink -> gantry(new Shuffle.Samples(1), sink)),
            new Way("DJL, random", sink -> djl(true, 0, sink)),
            new Way("DJL, random, 2 threads ahead", sink -> djl(true, 2, sink)));
    List<Path> files = shards.shards().stream().map(Shard::file).toList();
    long bytes = shards.totalBytes();
    int batchBytes = BATCH_SIZE * ImageSamples.IMAGE_BYTES;
    List<Contender> contestants = new ArrayList<>();
    for (int threads : new int[] {1, 2}) {
      contestants.add(CopyCeiling.contestant(files, bytes, threads, CACHED_BYTES));
      contestants.add(CopyCeiling.contestant(files, bytes, threads, batchBytes));
    }
    SampleDigest expected = SampleDigest.of(shards.samples(), new ImageSamples.Pixels()::of);
    for (Way way : ways) {
      SampleDigest digest = new SampleDigest();
      way.epoch().run(batch -> add(digest, batch));
      digest.require(way.name(), expected);
      contestants.add(Contender.of(way.name(), shards.samples(), () -> count(way.epoch())));
    }
    var _ =
        new Comparison("raw shards to NDArrays", shards.samples(), bytes, files, contestants)
            .print(turns);
  }

  private static long count(Epoch epoch) throws Exception {
    long[] samples = {0};
    epoch.run(batch -> samples[0] += batch.getData().singletonOrThrow().getShape().get(0));
    return samples[0];
  }

  private static void add(SampleDigest digest, Batch batch) {
    NDArray images = batch.getData().singletonOrThrow();
    long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
    ByteBuffer bytes = images.toByteBuffer();
    for (int i = 0; i < labels.length; i++) {
      digest.add(labels[i], bytes.slice(i * ImageSamples.IMAGE_BYTES, ImageSamples.IMAGE_BYTES));
    }
  }

  private void gantry(Shuffle shuffle, BatchSink sink) throws Exception {
    try (ShardDataset dataset =
        ShardDataset.builder()
            .setPath(folder)
            .setSampling(BATCH_SIZE)
            .optShuffle(shuffle)
            .optSession(session)
            .build()) {
      each(dataset, null, sink);
    }
  }

  private void djl(boolean random, int threads, BatchSink sink) throws Exception {
    try (DjlShards dataset =
        new DjlShards.Builder(folder).setSampling(BATCH_SIZE, random).build()) {
      if (threads == 0) {
        each(dataset, null, sink);
        return;
      }
      try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
        each(dataset, pool, sink);
      }
    }
  }

  private static void each(Dataset dataset, @Nullable ExecutorService executor, BatchSink sink)
      throws Exception {
    try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      for (Batch batch :
          executor == null ? dataset.getData(manager) : dataset.getData(manager, executor)) {
        sink.accept(batch);
        batch.close();
      }
    }
  }
}
