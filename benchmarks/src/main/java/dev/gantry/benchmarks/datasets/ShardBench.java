// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.ShardDataset;
import dev.gantry.formats.Shuffle;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/// Compares batches of NDArrays on the CPU from raw shards with batches of DJL's own datasets. A
/// batch counts when its arrays exist, and is closed at once.
record ShardBench(GantrySession session, Samples samples) {
  private static final int CACHED_BYTES = 2 << 20;
  private static final int SMALL_EPOCHS = 5;
  private static final Shuffle FILE_ORDER = new Shuffle.None();
  private static final Shuffle BLOCKS = new Shuffle.Blocks(1, 32);
  private static final Shuffle SINGLE = new Shuffle.Samples(1);

  /// Describes samples of 784 bytes in batches of 32, like those of MNIST.
  static Samples small(GantrySession session, Path folder) {
    return new Samples(session, folder, "mnist", TensorShape.of(1, 28, 28), 60_000, 32);
  }

  @FunctionalInterface
  private interface Epoch {
    void run(Consumer<Batch> sink) throws Exception;
  }

  /// Compares with DJL's `RandomAccessDataset` and its `StackBatchifier`, which reads the same
  /// bytes sample by sample, and with copies by the JDK.
  void large(int turns) throws Exception {
    List<Path> files = samples.files(Samples.Kind.SHARDS);
    Comparison all = comparison(1);
    for (int threads : new int[] {1, 2}) {
      all.add(HostCeilings.copy(files, threads, CACHED_BYTES))
          .add(HostCeilings.copy(files, threads, samples.batchSize() * samples.imageBytes()));
    }
    add(all, 1, "gantry, file order", sink -> ours(FILE_ORDER, sink));
    add(all, 1, "DJL, sequential", sink -> djl(false, 0, sink));
    add(all, 1, "DJL, sequential, 2 threads ahead", sink -> djl(false, 2, sink));
    add(all, 1, "gantry, blocks of 32", sink -> ours(BLOCKS, sink));
    add(all, 1, "gantry, single samples", sink -> ours(SINGLE, sink));
    add(all, 1, "DJL, random", sink -> djl(true, 0, sink));
    add(all, 1, "DJL, random, 2 threads ahead", sink -> djl(true, 2, sink));
    all.print(turns);
  }

  /// Compares with DJL's `ArrayDataset`, whose samples are in memory.
  void small(int turns) throws Exception {
    ByteBuffer images =
        ByteBuffer.allocateDirect(Math.toIntExact(samples.count() * samples.imageBytes()));
    LongFunction<byte[]> each = samples.images();
    for (long i = 0; i < samples.count(); i++) {
      images.put(each.apply(i));
    }
    try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      NDArray data =
          manager.create(images.flip(), new Shape(samples.count(), 1, 28, 28), DataType.UINT8);
      ArrayDataset arrays =
          new ArrayDataset.Builder()
              .setData(data)
              .optLabels(manager.arange(0, (float) samples.count(), 1, DataType.INT64))
              .setSampling(samples.batchSize(), true)
              .build();
      Comparison all = comparison(SMALL_EPOCHS);
      add(all, SMALL_EPOCHS, "DJL ArrayDataset, random", sink -> each(arrays, null, sink));
      add(all, SMALL_EPOCHS, "gantry, file order", sink -> ours(FILE_ORDER, sink));
      add(all, SMALL_EPOCHS, "gantry, blocks of 32", sink -> ours(BLOCKS, sink));
      add(all, SMALL_EPOCHS, "gantry, single samples", sink -> ours(SINGLE, sink));
      all.print(turns);
    }
  }

  private Comparison comparison(int epochs) throws IOException {
    return new Comparison(
            "raw shards of " + samples.imageBytes() + " bytes a sample to NDArrays",
            samples.bytes() * epochs)
        .samples(samples.count() * epochs)
        .warm(samples.files(Samples.Kind.SHARDS));
  }

  /// Checks the values of one epoch, and adds a contender that reads `epochs` epochs.
  private void add(Comparison all, int epochs, String name, Epoch epoch) throws Exception {
    SampleDigest digest = new SampleDigest();
    epoch.run(digest::add);
    digest.require(name, SampleDigest.of(samples));
    all.add(
        name,
        samples.count() * epochs,
        () -> {
          long[] done = {0};
          for (int i = 0; i < epochs; i++) {
            epoch.run(batch -> done[0] += batch.getData().singletonOrThrow().getShape().get(0));
          }
          return done[0];
        });
  }

  private void ours(Shuffle shuffle, Consumer<Batch> sink) throws Exception {
    try (ShardDataset dataset =
        ShardDataset.builder()
            .setPath(samples.shards())
            .setSampling(samples.batchSize())
            .optShuffle(shuffle)
            .optSession(session)
            .build()) {
      each(dataset, null, sink);
    }
  }

  private void djl(boolean random, int threads, Consumer<Batch> sink) throws Exception {
    try (DjlShards dataset =
        new DjlShards.Builder(samples).setSampling(samples.batchSize(), random).build()) {
      if (threads == 0) {
        each(dataset, null, sink);
        return;
      }
      try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
        each(dataset, pool, sink);
      }
    }
  }

  private static void each(
      Dataset dataset, @Nullable ExecutorService executor, Consumer<Batch> sink) throws Exception {
    try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      for (Batch batch :
          executor == null ? dataset.getData(manager) : dataset.getData(manager, executor)) {
        sink.accept(batch);
        batch.close();
      }
    }
  }
}
