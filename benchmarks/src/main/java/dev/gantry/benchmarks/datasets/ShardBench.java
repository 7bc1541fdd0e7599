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
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.ShardDataset;
import dev.gantry.formats.Shuffle;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/// Batches of NDArrays on the CPU out of raw shards, and by DJL's own datasets. A batch counts when its arrays
/// are there, and is closed at once.
record ShardBench(GantrySession session, Samples samples) {
  private static final int CACHED_BYTES = 2 << 20;
  private static final int SMALL_EPOCHS = 5;
  private static final Shuffle FILE_ORDER = new Shuffle.None();
  private static final Shuffle BLOCKS = new Shuffle.Blocks(1, 32);
  private static final Shuffle SINGLE = new Shuffle.Samples(1);

  /// Samples of 784 bytes in batches of 32, as MNIST has.
  static Samples small(GantrySession session, Path folder) {
    return new Samples(session, folder, "mnist", TensorShape.of(1, 28, 28), 60_000, 32);
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

  /// Beside DJL's `RandomAccessDataset` with its `StackBatchifier`, which reads the same bytes sample by sample, and what
  /// the JDK can copy.
  void large(int turns) throws Exception {
    List<Path> files = samples.files(Samples.Kind.SHARDS);
    List<Contender> ceilings = new ArrayList<>();
    for (int threads : new int[] {1, 2}) {
      ceilings.add(HostCeilings.copy(files, threads, CACHED_BYTES));
      ceilings.add(HostCeilings.copy(files, threads, samples.batchSize() * samples.imageBytes()));
    }
    compare(
        turns,
        1,
        ceilings,
        List.of(
            way("gantry, file order", FILE_ORDER),
            new Way("DJL, sequential", sink -> djl(false, 0, sink)),
            new Way("DJL, sequential, 2 threads ahead", sink -> djl(false, 2, sink)),
            way("gantry, blocks of 32", BLOCKS),
            way("gantry, single samples", SINGLE),
            new Way("DJL, random", sink -> djl(true, 0, sink)),
            new Way("DJL, random, 2 threads ahead", sink -> djl(true, 2, sink))));
  }

  /// Beside DJL's `ArrayDataset`, whose samples are in memory.
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
      compare(
          turns,
          SMALL_EPOCHS,
          List.of(),
          List.of(
              new Way("DJL ArrayDataset, random", sink -> each(arrays, null, sink)),
              way("gantry, file order", FILE_ORDER),
              way("gantry, blocks of 32", BLOCKS),
              way("gantry, single samples", SINGLE)));
    }
  }

  private void compare(int turns, int epochs, List<Contender> ceilings, List<Way> ways)
      throws Exception {
    Comparison all =
        new Comparison(
                "raw shards of " + samples.imageBytes() + " bytes a sample to NDArrays",
                samples.bytes() * epochs)
            .samples(samples.count() * epochs)
            .warm(samples.files(Samples.Kind.SHARDS))
            .addAll(ceilings);
    SampleDigest expected = SampleDigest.of(samples);
    for (Way way : ways) {
      SampleDigest digest = new SampleDigest();
      way.epoch().run(digest::add);
      digest.require(way.name(), expected);
      all.add(
          way.name(),
          samples.count() * epochs,
          () -> {
            long[] done = {0};
            for (int i = 0; i < epochs; i++) {
              way.epoch()
                  .run(batch -> done[0] += batch.getData().singletonOrThrow().getShape().get(0));
            }
            return done[0];
          });
    }
    all.print(turns);
  }

  private Way way(String name, Shuffle shuffle) {
    return new Way(
        name,
        sink -> {
          try (ShardDataset dataset =
              ShardDataset.builder()
                  .setPath(samples.shards())
                  .setSampling(samples.batchSize())
                  .optShuffle(shuffle)
                  .optSession(session)
                  .build()) {
            each(dataset, null, sink);
          }
        });
  }

  private void djl(boolean random, int threads, BatchSink sink) throws Exception {
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
