// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.djl.DatasetBuilder;
import dev.gantry.djl.GantryDataset;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.TfRecordDataset;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.List;
import java.util.Locale;

/// Measures how much heap an epoch takes, in a JVM with a small heap. It adds up all values on the way.
record HeapBench(Samples samples) {
  /// The heap's memory pools. The sum of their peaks, garbage included, is an upper bound.
  private static final List<MemoryPoolMXBean> HEAP =
      ManagementFactory.getMemoryPoolMXBeans().stream()
          .filter(pool -> pool.getType() == MemoryType.HEAP)
          .toList();

  void run() throws IOException {
    long pixels = epoch("raw shards", of(ShardDataset.builder().setPath(samples.shards())).build());
    for (IndexUse use : new IndexUse[] {IndexUse.REQUIRE, IndexUse.NONE}) {
      TfRecordDataset.Builder records =
          of(TfRecordDataset.builder().setPath(samples.indexed()).optIndex(use));
      samples.features().forEach(records::addFeature);
      if (epoch("TFRecord, index " + use, records.build()) != pixels) {
        throw new WrongBytesException("wrong pixels in TFRecord");
      }
    }
  }

  private <T extends DatasetBuilder<T>> T of(T builder) {
    return builder.setSampling(samples.batchSize()).optSession(samples.session());
  }

  /// @return the sum of all bytes of all images
  private long epoch(String name, GantryDataset opened) {
    System.gc();
    HEAP.forEach(MemoryPoolMXBean::resetPeakUsage);
    long start = System.nanoTime();
    long labels = 0;
    long pixels = 0;
    try (GantryDataset dataset = opened;
        NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      for (Batch batch : dataset.getData(manager)) {
        labels += sum(batch.getLabels().singletonOrThrow());
        pixels += sum(batch.getData().singletonOrThrow());
        batch.close();
      }
    }
    double seconds = (System.nanoTime() - start) / 1e9;
    if (labels != samples.count() * (samples.count() - 1) / 2) {
      throw new WrongBytesException(name + ": wrong labels");
    }
    System.out.printf(
        Locale.ROOT,
        "heap, %s\tpeak %.1f MB of %.0f MB\t%,d samples, %.1f GB in %.1f s%n",
        name,
        HEAP.stream().mapToLong(pool -> pool.getPeakUsage().getUsed()).sum() / 1e6,
        Runtime.getRuntime().maxMemory() / 1e6,
        samples.count(),
        samples.bytes() / 1e9,
        seconds);
    return pixels;
  }

  private static long sum(NDArray array) {
    try (NDArray sum = array.sum()) {
      return sum.getLong();
    }
  }
}
