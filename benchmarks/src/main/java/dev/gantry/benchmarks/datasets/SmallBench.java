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
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.ShardDataset;
import dev.gantry.formats.Field;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// Batches of 32 samples of 784 bytes and a label, as MNIST has: ours out of raw shards in the page
/// cache, and DJL's `ArrayDataset`, whose samples are in memory. A batch counts when its arrays are
/// there, and is closed at once. "ring" is what is below our arrays.
final class SmallBench {
  private static final int BATCH_SIZE = 32;
  private static final int SAMPLES = 60_000;
  private static final int IMAGE_BYTES = 784;
  private static final int EPOCHS = 5;

  private final GantrySession session;
  private final Path folder;
  private final byte[] images = new byte[SAMPLES * IMAGE_BYTES];

  /// Makes the samples in `folder`, where they are not there.
  SmallBench(GantrySession session, Path folder) {
    this.session = session;
    this.folder = folder.resolve("mnist");
    new SplittableRandom(1).nextBytes(images);
    if (!Files.exists(this.folder)) {
      write();
    }
  }

  private void write() {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, TensorShape.of(1, 28, 28)),
            new Field("label", DType.I64, TensorShape.of()));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(SAMPLES);
    try (ShardWriter writer = ShardWriter.create(session, folder, fields, options)) {
      MemorySegment all = MemorySegment.ofArray(images);
      for (int i = 0; i < SAMPLES; i++) {
        writer.append(
            Map.of(
                "image",
                all.asSlice((long) i * IMAGE_BYTES, IMAGE_BYTES),
                "label",
                MemorySegment.ofArray(new long[] {i})));
      }
      var _ = writer.finish();
    }
  }

  void run(int turns) throws Exception {
    ShardSet shards = ShardSet.open(folder);
    List<Path> files = shards.shards().stream().map(Shard::file).toList();
    long samples = (long) SAMPLES * EPOCHS;
    Shuffle blocks = new Shuffle.Blocks(1, BATCH_SIZE);
    Shuffle single = new Shuffle.Samples(1);
    try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      ArrayDataset arrays = arrays(manager);
      check(single);
      List<Contender> contestants =
          List.of(
              Contender.of("ring, blocks of 32", samples, () -> ring(shards, blocks)),
              Contender.of("ring, single samples", samples, () -> ring(shards, single)),
              Contender.of("gantry, file order", samples, () -> gantry(new Shuffle.None())),
              Contender.of("gantry, blocks of 32", samples, () -> gantry(blocks)),
              Contender.of("gantry, single samples", samples, () -> gantry(single)),
              Contender.of("DJL ArrayDataset, random", samples, () -> each(arrays, EPOCHS)));
      var _ =
          new Comparison(
                  "batches of 32 x 784 bytes", samples, samples * IMAGE_BYTES, files, contestants)
              .print(turns);
    }
  }

  private ArrayDataset arrays(NDManager manager) {
    NDArray data =
        manager.create(ByteBuffer.wrap(images), new Shape(SAMPLES, 1, 28, 28), DataType.UINT8);
    return new ArrayDataset.Builder()
        .setData(data)
        .optLabels(manager.arange(0, SAMPLES, 1, DataType.INT64))
        .setSampling(BATCH_SIZE, true)
        .build();
  }

  private long ring(ShardSet shards, Shuffle shuffle) {
    try (Batches batches =
            EpochBatches.of(
                shards.catalogue(List.of("image", "label")),
                ImageSamples.order(BATCH_SIZE, shuffle));
        PrefetchRing<BatchView> ring =
            session.ring(
                DatasetBench.options(
                    dev.gantry.core.Device.HOST,
                    batches,
                    2,
                    DatasetBench.transfer(EpochBatches.LIMITS),
                    false),
                new EpochChain(batches, batches.start(), EPOCHS - 1))) {
      long samples = 0;
      for (var next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          samples += batch.label().samples();
        }
      }
      return samples;
    }
  }

  private ShardDataset dataset(Shuffle shuffle, int epochs) {
    return ShardDataset.builder()
        .setPath(folder)
        .setSampling(BATCH_SIZE)
        .optShuffle(shuffle)
        .optRepeat(epochs)
        .optSession(session)
        .build();
  }

  private long gantry(Shuffle shuffle) throws Exception {
    try (ShardDataset dataset = dataset(shuffle, EPOCHS)) {
      return each(dataset, 1);
    }
  }

  private static long each(Dataset dataset, int epochs) throws Exception {
    long samples = 0;
    try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      for (int i = 0; i < epochs; i++) {
        for (Batch batch : dataset.getData(manager)) {
          samples += batch.getData().singletonOrThrow().getShape().get(0);
          batch.close();
        }
      }
    }
    return samples;
  }

  private void check(Shuffle shuffle) throws Exception {
    try (ShardDataset dataset = dataset(shuffle, 1);
        NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      for (Batch batch : dataset.getData(manager)) {
        ByteBuffer found = batch.getData().singletonOrThrow().toByteBuffer();
        long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
        for (int i = 0; i < labels.length; i++) {
          ByteBuffer written = ByteBuffer.wrap(images, (int) labels[i] * IMAGE_BYTES, IMAGE_BYTES);
          if (!found.slice(i * IMAGE_BYTES, IMAGE_BYTES).equals(written)) {
            throw new IllegalStateException("sample " + labels[i] + " is not what was written");
          }
        }
        batch.close();
      }
    }
  }
}
