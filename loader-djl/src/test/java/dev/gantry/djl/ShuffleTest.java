// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The README's two calls, `setSampling(32)` and `optShuffle(42)`, on files whose samples are
/// sorted by class.
@ExtendWith(NoLeaks.class)
class ShuffleTest {
  /// The smallest number of classes in a batch, if 6,000 samples are in random order, with the
  /// same seeds.
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
        .setPath(files)
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

  /// Returns how often the log warns while two epochs are read.
  private static int warnings(Supplier<GantryDataset> opened) {
    String log =
        StandardError.during(() -> {
          try (NDManager manager = NDManager.newBaseManager();
              GantryDataset dataset = opened.get()) {
            for (int epoch = 0; epoch < 2; epoch++) {
              dataset.getData(manager).forEach(Batch::close);
            }
          }
        });
    return log.split("WARN .*where files are sorted", -1).length - 1;
  }

  @Test
  void wholeFilesInRandomOrderAreWarnedOfOnceWhereTheyAreFew() {
    Path shards = SortedClasses.shards(folder.resolve("shards"));
    ShardDataset.Builder dataset = ShardDataset.builder().setPath(shards).setSampling(500);
    assertThat(warnings(() -> dataset.optShuffle(new Shuffle.Shards(42)).build())).isEqualTo(1);
    assertThat(warnings(() -> dataset.optShuffle(42).build())).isZero();
    List<Path> files = SortedClasses.records(folder, Compression.GZIP);
    TfRecordDataset.Builder streams = records(files.subList(0, 1)).setSampling(500);
    assertThat(warnings(() -> streams.optShuffle(new Shuffle.Shards(42)).build())).isEqualTo(1);
  }

  @Test
  void aBufferOfASmallPartOfFewFilesIsWarnedOfOnce() {
    List<Path> files = SortedClasses.records(folder, Compression.GZIP);
    TfRecordDataset.Builder streams = records(files).setSampling(500);
    Function<Integer, Integer> ofBuffer =
        records ->
            warnings(() ->
                streams
                    .optRecords(TfRecordOptions.defaults().withShuffleBuffer(records, 1 << 20))
                    .build());
    assertThat(ofBuffer.apply(1000)).isEqualTo(1);
    assertThat(ofBuffer.apply(1500)).isZero();
    assertThat(ofBuffer.apply(SortedClasses.SAMPLES)).isZero();
  }

  @Test
  void aSmallBufferIsNotWarnedOfWhereItHoldsRecordsOfManyFiles() {
    List<Path> files = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      files.addAll(
          SortedClasses.records(folder.resolve("part-" + i), Compression.NONE).subList(0, 1));
    }
    TfRecordDataset.Builder streams =
        records(files)
            .setSampling(500)
            .optRecords(TfRecordOptions.defaults().withShuffleBuffer(100, 1 << 20));
    assertThat(warnings(() -> streams.optInterleave(8, 1).build())).isZero();
    assertThat(warnings(() -> streams.optInterleave(1, 1).build())).isEqualTo(1);
  }
}
