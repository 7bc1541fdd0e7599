// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDManager;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The README's two calls, `setSampling(32)` and `optShuffle(42)`, on files whose samples are
/// sorted by class.
@ExtendWith(NoLeaks.class)
class ShuffleTest {
  /// What 6,000 samples in random order have in their least mixed batch, by the same seeds.
  private static final int FEWEST_CLASSES = 6;

  @TempDir(factory = InMemory.class)
  Path folder;

  private ShardDataset.Builder shards() {
    return ShardDataset.builder()
        .setPath(SortedClasses.shards(folder.resolve("shards")))
        .setSampling(32)
        .optShuffle(42);
  }

  private static TfRecordDataset.Builder records(List<Path> files) {
    return TfRecordDataset.builder()
        .setFiles(files)
        .addFeature(FeatureSpec.floats("x", 16))
        .addFeature(FeatureSpec.int64s("label"))
        .setSampling(32)
        .optShuffle(42);
  }

  private static void mixesAndTrainsAsWellAsInMemory(GantryDataset dataset) throws Exception {
    try (NDManager manager = NDManager.newBaseManager()) {
      assertThat(SortedClasses.classes(dataset, manager))
          .hasSize(SortedClasses.SAMPLES / 32)
          .allMatch(classes -> classes >= FEWEST_CLASSES);
      double inMemory = SortedClasses.accuracy(SortedClasses.inMemory(manager));
      assertThat(inMemory).isGreaterThan(0.9);
      assertThat(SortedClasses.accuracy(dataset)).isGreaterThan(inMemory - 0.01);
    }
  }

  @Test
  void sortedShardsTrainAsWellAsSamplesShuffledInMemory() throws Exception {
    try (ShardDataset dataset = shards().build()) {
      mixesAndTrainsAsWellAsInMemory(dataset);
    }
  }

  @Test
  void sortedIndexedRecordsTrainAsWellAsSamplesShuffledInMemory() throws Exception {
    List<Path> files = SortedClasses.records(folder, Compression.NONE);
    try (TfRecordDataset dataset = records(files).optIndex(IndexUse.BUILD).build()) {
      mixesAndTrainsAsWellAsInMemory(dataset);
    }
  }

  @Test
  void sortedStreamsTrainAsWellAsSamplesShuffledInMemory() throws Exception {
    List<Path> files = SortedClasses.records(folder, Compression.GZIP);
    try (TfRecordDataset dataset = records(files).build()) {
      mixesAndTrainsAsWellAsInMemory(dataset);
    }
  }
}
