// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Splits, subsets, filters and weights of samples, on shards whose labels are the samples'
/// numbers, and on samples that are sorted by class.
@ExtendWith(NoLeaks.class)
class ChosenSamplesTest {
  private static final int SAMPLES = 100;

  @TempDir(factory = InMemory.class)
  Path folder;

  private Path written;

  private ShardDataset.Builder numbered() {
    if (written == null) {
      written = ImageShards.write(folder.resolve("numbered"), SAMPLES, 17);
    }
    return ShardDataset.builder().setPath(written).setSampling(8).optPoison(true);
  }

  private ShardDataset.Builder classes() {
    if (written == null) {
      written = SortedClasses.shards(folder.resolve("classes"));
    }
    return ShardDataset.builder().setPath(written).setSampling(32);
  }

  /// Returns the labels of one epoch's batches, and checks that each image is the image of its
  /// label.
  private static List<Long> labels(GantryDataset dataset, NDManager manager) throws Exception {
    List<Long> all = new ArrayList<>();
    for (Batch batch : dataset.getData(manager)) {
      try (batch) {
        long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
        if (batch.getData().contains("image")) {
          byte[] images = batch.getData().get("image").toByteArray();
          for (int i = 0; i < labels.length; i++) {
            assertThat(images[i * ImageShards.IMAGE_BYTES + 3])
                .isEqualTo(ImageShards.pixel(labels[i], 3));
          }
        }
        LongStream.of(labels).forEach(all::add);
      }
    }
    return all;
  }

  private static List<Long> labels(DatasetBuilder<?> builder) throws Exception {
    try (NDManager manager = NDManager.newBaseManager();
        GantryDataset dataset = build(builder)) {
      List<Long> labels = labels(dataset, manager);
      assertThat(dataset.size()).hasValue(labels.size());
      return labels;
    }
  }

  private static GantryDataset build(DatasetBuilder<?> builder) {
    return switch (builder) {
      case ShardDataset.Builder shards -> shards.build();
      case TfRecordDataset.Builder records -> records.build();
      case WebDataset.Builder archives -> archives.build();
    };
  }

  private static List<Long> range(long from, long to) {
    return LongStream.range(from, to).boxed().toList();
  }

  @Test
  void partsOfASplitHaveEachSampleOnceInWhateverOrder() throws Exception {
    List<Long> train = labels(numbered().optSplit(42, 0, 8, 2));
    List<Long> valid = labels(numbered().optSplit(42, 1, 8, 2).optShuffle(7));
    assertThat(train).hasSize(80).isSorted();
    assertThat(valid).hasSize(20);
    List<Long> all = new ArrayList<>(train);
    all.addAll(valid);
    assertThat(all).containsExactlyInAnyOrderElementsOf(range(0, SAMPLES));
    for (Shuffle shuffle :
        List.of(new Shuffle.Shards(3), new Shuffle.Blocks(3, 5), new Shuffle.Samples(3))) {
      assertThat(labels(numbered().optSplit(42, 0, 8, 2).optShuffle(shuffle).optInterleave(3, 2)))
          .containsExactlyInAnyOrderElementsOf(train);
    }
  }

  @Test
  void eachChoiceIsMadeFromWhatTheOnesBeforeItKept() throws Exception {
    assertThat(labels(numbered().optRange(30, 60))).isEqualTo(range(30, 60));
    assertThat(labels(numbered().optSubset(99, 3, 40, 3))).containsExactly(3L, 40L, 99L);
    long[] numbers = {5, 6};
    ShardDataset.Builder subset = numbered().optSubset(numbers);
    numbers[0] = 50;
    assertThat(labels(subset)).containsExactly(5L, 6L);
    assertThat(labels(numbered().optRange(30, 60).optSubset(0, 29))).containsExactly(30L, 59L);
    assertThat(labels(numbered().optFilter("label", label -> label.longValue() % 10 == 4)))
        .containsExactly(4L, 14L, 24L, 34L, 44L, 54L, 64L, 74L, 84L, 94L);
    assertThat(
            labels(
                numbered().optFilter("label", label -> label.longValue() % 10 == 4).optRange(2, 4)))
        .containsExactly(24L, 34L);
  }

  @Test
  void ranksShareTheKeptSamples() throws Exception {
    Supplier<ShardDataset.Builder> part = () -> numbered().optSplit(1, 0, 3, 1).optShuffle(9);
    List<Long> alone = labels(part.get());
    List<Long> together = new ArrayList<>();
    try (NDManager manager = NDManager.newBaseManager()) {
      for (int rank = 0; rank < 3; rank++) {
        try (ShardDataset dataset = part.get().optRank(rank, 3).build()) {
          assertThat(dataset.size()).hasValue(75);
          together.addAll(labels(dataset, manager));
        }
      }
    }
    assertThat(together).containsExactlyInAnyOrderElementsOf(alone);
  }

  @Test
  void aPartAndDrawnSamplesGoOnWhereTheyWere() throws Exception {
    List<Supplier<ShardDataset.Builder>> all =
        List.of(
            () -> numbered().optSplit(1, 0, 3, 1).optShuffle(9),
            () ->
                numbered()
                    .optFilter("label", label -> label.intValue() > 20)
                    .optWeights(3, "label", Number::doubleValue)
                    .optRank(1, 2));
    for (Supplier<ShardDataset.Builder> builder : all) {
      try (NDManager manager = NDManager.newBaseManager();
          ShardDataset whole = builder.get().build();
          ShardDataset killed = builder.get().build();
          ShardDataset resumed = builder.get().build()) {
        List<Long> expected = labels(whole, manager);
        List<Long> second = labels(whole, manager);
        assertThat(second).isNotEqualTo(expected);
        Iterator<Batch> some = killed.getData(manager).iterator();
        some.next().close();
        some.next().close();
        resumed.restore(killed.state());
        assertThat(labels(resumed, manager)).isEqualTo(expected.subList(16, expected.size()));
        assertThat(labels(resumed, manager)).isEqualTo(second);
      }
    }
  }

  @Test
  void aStateOfOtherSamplesIsRefused() {
    try (ShardDataset train = numbered().optSplit(1, 0, 1, 1).build();
        ShardDataset valid = numbered().optSplit(1, 1, 1, 1).build();
        ShardDataset drawn = numbered().optWeights(1, "label", Number::doubleValue).build();
        ShardDataset drawnElse = numbered().optWeights(1, "label", _ -> 1).build()) {
      assertThatThrownBy(() -> valid.restore(train.state()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("of other samples of it");
      assertThatThrownBy(() -> drawnElse.restore(drawn.state()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("shuffle=weights:1:");
    }
  }

  @Test
  void balancedClassesComeEquallyOften() throws Exception {
    // Class 0 has 600 samples, and class 1 has 100.
    List<Long> drawn = labels(classes().optRange(0, 700).optBalanced(5, "label"));
    assertThat(drawn).hasSize(700);
    assertThat(drawn.stream().filter(label -> label == 1).count()).isBetween(300L, 400L);
    try (ShardDataset dataset = classes().optRange(0, 699).build()) {
      assertThat(dataset.classWeights("label"))
          .isEqualTo(Map.of(0L, 699 / 2.0 / 600, 1L, 699 / 2.0 / 99));
      assertThatThrownBy(() -> dataset.classWeights("x"))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("must be one number");
    }
  }

  @Test
  void aFilterMayNameAFieldThatBatchesDoNotHave() throws Exception {
    try (NDManager manager = NDManager.newBaseManager();
        ShardDataset dataset =
            numbered()
                .optData("image")
                .optLabels()
                .optFilter("label", label -> label.intValue() == 77)
                .build()) {
      for (Batch batch : dataset.getData(manager)) {
        try (batch) {
          assertThat(batch.getData()).hasSize(1);
          assertThat(batch.getData().get("image").toByteArray()[0])
              .isEqualTo(ImageShards.pixel(77, 0));
        }
      }
    }
  }

  @Test
  void recordsAreChosenByTheirIndexesAndStreamsRefuse() throws Exception {
    List<Path> files = SortedClasses.records(folder, Compression.NONE);
    Supplier<TfRecordDataset.Builder> records =
        () ->
            TfRecordDataset.builder()
                .setPath(files)
                .addFeature(FeatureSpec.floats("x", 16))
                .addFeature(FeatureSpec.int64s("label"))
                .setSampling(64)
                .optLastBatch(LastBatch.KEEP);
    assertThatThrownBy(() -> records.get().optSplit(1, 0, 1, 1).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optIndex(IndexUse.BUILD)");
    assertThatThrownBy(() -> records.get().optIndex(IndexUse.NONE).optRange(0, 5).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optIndex(IndexUse.BUILD)");
    try (TfRecordDataset streamed = records.get().build()) {
      assertThat(streamed.size()).isEmpty();
      assertThatThrownBy(() -> streamed.classWeights("label"))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("optIndex(IndexUse.BUILD)");
    }
    List<Long> chosen =
        labels(
            records
                .get()
                .optIndex(IndexUse.BUILD)
                .optFilter("label", label -> label.intValue() == 3 || label.intValue() == 8)
                .optSplit(2, 1, 1, 1)
                .optShuffle(4));
    assertThat(chosen).hasSize(600).containsOnly(3L, 8L);
    assertThatThrownBy(
            () -> records.get().optFilter("label", label -> label.intValue() > 9).build())
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "optFilter of 'label': none of 6000 samples is kept; values of integers and booleans"
                + " are Long, all others Double");
  }

  @Test
  void impossibleChoicesAreRefused() {
    assertThatThrownBy(() -> numbered().optRange(5, 5)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> numbered().optSplit(1, 2, 1, 1)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> numbered().optSplit(1, 0, 1, 0)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> numbered().optSplit(1, 0))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("a size for each part");
    assertThatThrownBy(() -> numbered().optRange(90, 101).build())
        .isInstanceOf(MisuseException.class)
        .hasMessage("optRange(90, 101): there is no sample 100 among 100");
    assertThatThrownBy(() -> numbered().optFilter("cls", _ -> true).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optFilter")
        .hasMessageContaining("'cls'");
    assertThatThrownBy(() -> numbered().optFilter("image", _ -> true).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("must be one number");
    assertThatThrownBy(() -> numbered().optBalanced(1, "label").optShuffle(1))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "optBalanced (label) and optShuffle (Samples[seed=1]) both choose the order of the"
                + " samples; call one of them");
  }

  @Test
  void severalFoldersOfShardsAreOneDataset() throws Exception {
    ImageShards.write(folder.resolve("day-1"), 20, 17);
    ImageShards.write(folder.resolve("day-2"), 30, 17);
    Supplier<ShardDataset.Builder> days =
        () -> ShardDataset.builder().setPath(folder + "/day-*").setSampling(8).optVerify(true);
    List<Long> expected = new ArrayList<>(range(0, 20));
    expected.addAll(range(0, 30));
    assertThat(labels(days.get())).isEqualTo(expected);
    assertThat(labels(days.get().setPath(folder + "/day-{2,1}").optRange(30, 50)))
        .isEqualTo(range(0, 20));
    SortedClasses.shards(folder.resolve("day-3"));
    assertThatThrownBy(() -> days.get().build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("has the fields");
    String one = folder.resolve("day-1").toString();
    assertThatThrownBy(() -> days.get().setPath(one, one).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("given twice");
  }

  @Test
  void patternsNameFilesOfRecordsAndNotTheirIndexes() throws Exception {
    List<Path> _ = SortedClasses.records(folder, Compression.NONE);
    Supplier<TfRecordDataset.Builder> records = () -> TfRecordDataset.builder().setSampling(64);
    TfRecordDataset.buildIndexes(folder + "/sorted-0000{1..2}-of-*");
    assertThat(labels(records.get().setPath(folder + "/s?rted-00001*", folder + "/*-00002-of*")))
        .hasSize(3000)
        .isSorted();
    assertThatThrownBy(() -> records.get().setPath(folder + "/none-*").build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("there is no such file");
  }
}
