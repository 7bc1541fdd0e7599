// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.benchmarks.harness.HeapPeak;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.GantryDataset;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.util.Locale;

/// How much heap an epoch takes, in a JVM that was given little. Every value is added up on the
/// way.
final class HeapBench {
  private static final int BATCH_SIZE = 256;

  private final GantrySession session;
  private final ImageSamples samples;
  private final long count;

  HeapBench(GantrySession session, ImageSamples samples) {
    this.session = session;
    this.samples = samples;
    this.count = ShardSet.open(samples.shards()).samples();
  }

  void run() {
    long pixels = epoch("raw shards", shards(), -1);
    pixels = epoch("TFRecord by index", records(IndexUse.REQUIRE), pixels);
    pixels = epoch("TFRecord as stream", records(IndexUse.NONE), pixels);
    System.out.printf("heap\tall values alike\tthey add up to %,d%n", pixels);
  }

  private GantryDataset shards() {
    return ShardDataset.builder()
        .setPath(samples.shards())
        .setSampling(BATCH_SIZE)
        .optSession(session)
        .build();
  }

  private GantryDataset records(IndexUse use) {
    return TfRecordDataset.builder()
        .setPath(samples.records())
        .addFeature(FeatureSpec.bytes("image", 3, 224, 224))
        .addFeature(FeatureSpec.int64s("label"))
        .optIndex(use)
        .setSampling(BATCH_SIZE)
        .optSession(session)
        .build();
  }

  /// @param expected the sum of all bytes of all images, or -1 where it is not known yet
  /// @return that sum
  private long epoch(String name, GantryDataset dataset, long expected) {
    HeapPeak heap = HeapPeak.start();
    long start = System.nanoTime();
    long labels = 0;
    long pixels = 0;
    long batches = 0;
    try (dataset;
        NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      for (Batch batch : dataset.getData(manager)) {
        labels += sum(batch.getLabels().singletonOrThrow());
        pixels += sum(batch.getData().singletonOrThrow());
        batches++;
        batch.close();
      }
    }
    double seconds = (System.nanoTime() - start) / 1e9;
    if (labels != count * (count - 1) / 2 || (expected >= 0 && pixels != expected)) {
      throw new IllegalStateException(name + ": wrong values: " + labels + ", " + pixels);
    }
    System.out.printf(
        Locale.ROOT,
        "heap, %s\tpeak %.1f MB of %.0f MB\t%,d samples in %,d batches, %.1f GB in %.1f s%n",
        name,
        heap.bytes() / 1e6,
        Runtime.getRuntime().maxMemory() / 1e6,
        count,
        batches,
        count * ImageSamples.IMAGE_BYTES / 1e9,
        seconds);
    return pixels;
  }

  private static long sum(NDArray array) {
    try (NDArray sum = array.sum()) {
      return sum.getLong();
    }
  }
}
