// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

@ExtendWith(NoLeaks.class)
class DatasetResumeTest {
  @TempDir Path folder;

  /// Returns the labels of each batch as text, from the dataset's current position on.
  private static List<String> batches(ResumableDataset dataset, NDManager manager, int epochs)
      throws Exception {
    List<String> all = new ArrayList<>();
    for (int epoch = 0; epoch < epochs; epoch++) {
      for (Batch batch : dataset.getData(manager)) {
        try (batch) {
          all.add(text(batch));
        }
      }
    }
    return all;
  }

  private static String text(Batch batch) {
    return Arrays.toString(batch.getLabels().singletonOrThrow().toLongArray());
  }

  /// @param make makes a dataset with a given prefetch
  private static void goesOnAfterAnyBatch(IntFunction<ResumableDataset> make) throws Exception {
    goesOnAfterAnyBatch(make, true);
  }

  /// @param knowsItsEnd whether a dataset is at the next epoch as soon as it has given its last
  ///     batch
  private static void goesOnAfterAnyBatch(IntFunction<ResumableDataset> make, boolean knowsItsEnd)
      throws Exception {
    try (NDManager manager = NDManager.newBaseManager();
        ResumableDataset whole = make.apply(2)) {
      List<String> expected = batches(whole, manager, 1);
      int ofFirstEpoch = expected.size();
      expected.addAll(batches(whole, manager, 1));
      int last = knowsItsEnd ? ofFirstEpoch : ofFirstEpoch - 1;
      for (int taken = 0; taken <= last; taken++) {
        String state;
        try (ResumableDataset killed = make.apply(2 + taken % 3)) {
          Iterator<Batch> some = killed.getData(manager).iterator();
          for (int i = 0; i < taken; i++) {
            some.next().close();
          }
          state = killed.state();
        }
        try (ResumableDataset resumed = make.apply(4 - taken % 3)) {
          resumed.restore(state);
          assertThat(resumed.state()).isEqualTo(state);
          int epochs = taken == ofFirstEpoch ? 1 : 2;
          List<String> rest = batches(resumed, manager, epochs);
          assertThat(rest)
              .as("after %d", taken)
              .isEqualTo(expected.subList(taken, expected.size()));
          assertThat(resumed.state()).isEqualTo(whole.state());
        }
      }
    }
  }

  @Test
  void shuffledSamplesGoOnAfterAnyBatch() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 50, 17);
    goesOnAfterAnyBatch(slots ->
        ShardDataset.builder()
            .setPath(path)
            .setSampling(7)
            .optShuffle(5)
            .optInterleave(2, 3)
            .optPrefetch(slots)
            .build());
  }

  @Test
  void shardsGoOnAfterAnyBatchWithAnotherPrefetchDepth() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 50, 17);
    goesOnAfterAnyBatch(slots ->
        ShardDataset.builder()
            .setPath(path)
            .setSampling(7)
            .optShuffle(new Shuffle.Blocks(5, 4))
            .optPrefetch(slots)
            .build());
  }

  @Test
  void repeatedEpochsGoOnAfterAnyBatchAndEndWithTheLastOfThem() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 20, 17);
    goesOnAfterAnyBatch(slots ->
        ShardDataset.builder()
            .setPath(path)
            .setSampling(7)
            .optShuffle(new Shuffle.Blocks(5, 4))
            .optRepeat(3)
            .optPrefetch(slots)
            .build());
  }

  @ParameterizedTest
  @CsvSource({"1, 3", "3, 9"})
  void progressOfAResumedEpochCountsFromWhereItWas(long epochs, long total) throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 20, 17);
    ShardDataset.Builder builder =
        ShardDataset.builder().setPath(path).setSampling(7).optRepeat(epochs);
    try (NDManager manager = NDManager.newBaseManager();
        ShardDataset killed = builder.build();
        ShardDataset resumed = builder.build()) {
      Iterator<Batch> some = killed.getData(manager).iterator();
      for (int i = 0; i < total - 2; i++) {
        some.next().close();
      }
      resumed.restore(killed.state());
      List<Long> progress = new ArrayList<>();
      for (Batch batch : resumed.getData(manager)) {
        try (batch) {
          progress.add(batch.getProgress());
          assertThat(batch.getProgressTotal()).isEqualTo(total);
        }
      }
      assertThat(progress).containsExactly(total - 2, total - 1);
    }
  }

  @Test
  void streamsGoOnAfterAnyBatch() throws Exception {
    List<Path> files = ImageRecords.write(folder, 50, 3, Compression.GZIP);
    goesOnAfterAnyBatch(slots -> stream(files, slots), false);
  }

  @Test
  void shuffledStreamsGoOnAfterAnyBatch() throws Exception {
    List<Path> files = ImageRecords.write(folder, 50, 3, Compression.GZIP);
    TfRecordOptions options = TfRecordOptions.defaults().withShuffleBuffer(12, 1 << 20);
    goesOnAfterAnyBatch(
        slots ->
            TfRecordDataset.builder()
                .setPath(files)
                .addFeature(FeatureSpec.int64s("label"))
                .addFeature(FeatureSpec.floats("x", 2))
                .setSampling(7)
                .optShuffle(5)
                .optInterleave(2, 3)
                .optRecords(options)
                .optPrefetch(slots)
                .build(),
        false);
  }

  private static TfRecordDataset stream(List<Path> files, int slots) {
    return TfRecordDataset.builder()
        .setPath(files)
        .addFeature(FeatureSpec.int64s("label"))
        .addFeature(FeatureSpec.floats("x", 2))
        .setSampling(7)
        .optInterleave(2, 3)
        .optPrefetch(slots)
        .build();
  }

  @Test
  void mixturesOfStreamsAndRepeatedShardsGoOnAfterAnyBatch() throws Exception {
    Path shards = ImageShards.write(folder.resolve("shards"), 20, 17);
    List<Path> files = ImageRecords.write(folder, 50, 3, Compression.NONE);
    goesOnAfterAnyBatch(
        slots ->
            MixedDataset.builder()
                .addDataset(
                    ShardDataset.builder()
                        .setPath(shards)
                        .setSampling(7)
                        .optShuffle(3)
                        .optRepeat(2)
                        .build(),
                    1)
                .addDataset(stream(files, slots), 2)
                .build(),
        false);
  }

  @Test
  void whatIsLeftOfAnIterationWithoutEndIsTheRestOfItsEpoch() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 20, 17);
    ShardDataset.Builder builder =
        ShardDataset.builder().setPath(path).setSampling(7).optShuffle(1);
    try (NDManager manager = NDManager.newBaseManager();
        ShardDataset once = builder.build();
        ShardDataset endless = builder.optRepeat().build()) {
      List<String> epochs = batches(once, manager, 7);
      Iterator<Batch> first = endless.getData(manager).iterator();
      for (int i = 0; i < 7; i++) {
        assertThat(textAndClose(first.next())).isEqualTo(epochs.get(i));
      }
      Iterator<Batch> second = endless.getData(manager).iterator();
      for (int i = 9; i < 15; i++) {
        assertThat(textAndClose(second.next())).isEqualTo(epochs.get(i));
      }
      // After a complete epoch no batch is skipped.
      Iterator<Batch> third = endless.getData(manager).iterator();
      assertThat(textAndClose(third.next())).isEqualTo(epochs.get(15));
      endless.restore(endless.state());
      assertThat(textAndClose(endless.getData(manager).iterator().next()))
          .isEqualTo(epochs.get(16));
    }
  }

  @Test
  void anIterationWithoutEndWhoseEpochsHaveNoBatchStaysWhereItIs() {
    Path path = ImageShards.write(folder.resolve("shards"), 3, 17);
    try (NDManager manager = NDManager.newBaseManager();
        ShardDataset dataset =
            ShardDataset.builder()
                .setPath(path)
                .setSampling(4)
                .optLastBatch(LastBatch.DROP)
                .optRepeat()
                .build()) {
      String start = dataset.state();
      assertThat(dataset.getData(manager).iterator().hasNext()).isFalse();
      assertThat(dataset.state()).isEqualTo(start);
      dataset.restore(dataset.state());
    }
  }

  private static String textAndClose(Batch batch) {
    try (batch) {
      return text(batch);
    }
  }

  @ParameterizedTest
  @EnumSource
  void mixturesHoldNothingBehindTheirLastBatch(MixedDataset.End end) throws Exception {
    Path first = ImageShards.write(folder.resolve("first"), 40, 17);
    Path second = ImageShards.write(folder.resolve("second"), 21, 30);
    try (NDManager manager = NDManager.newBaseManager();
        MixedDataset mixture =
            MixedDataset.builder()
                .addDataset(ShardDataset.builder().setPath(first).setSampling(5).build(), 1)
                .addDataset(ShardDataset.builder().setPath(second).setSampling(4).build(), 1)
                .optEnd(end)
                .build()) {
      Iterator<Batch> batches = mixture.getData(manager).iterator();
      while (batches.hasNext()) {
        batches.next().close();
      }
      assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
    }
  }

  @Test
  void aMixtureOfWhichOneDatasetCannotBeginHoldsNothing() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 40, 17);
    ShardDataset.Builder builder = ShardDataset.builder().setPath(path).setSampling(5);
    ShardDataset closed = builder.build();
    closed.close();
    try (NDManager manager = NDManager.newBaseManager();
        MixedDataset mixture =
            MixedDataset.builder().addDataset(builder.build(), 1).addDataset(closed, 1).build()) {
      LiveResources.Snapshot before = NoLeaks.held();
      assertThatThrownBy(() -> mixture.getData(manager).iterator())
          .isInstanceOf(MisuseException.class)
          .hasMessage("this dataset is closed");
      assertThat(NoLeaks.held()).isEqualTo(before);
    }
  }

  @Test
  void aMixtureRefusesAStateOfWhichOneDatasetIsAnotherAndStaysWhereItIs() throws Exception {
    Path first = ImageShards.write(folder.resolve("first"), 40, 17);
    Path second = ImageShards.write(folder.resolve("second"), 21, 30);
    Path third = ImageShards.write(folder.resolve("third"), 22, 30);
    try (NDManager manager = NDManager.newBaseManager();
        MixedDataset mixture = mixture(first, second);
        MixedDataset other = mixture(first, third)) {
      other.getData(manager).iterator().next().close();
      Iterator<Batch> batches = mixture.getData(manager).iterator();
      batches.next().close();
      batches.next().close();
      String state = mixture.state();
      assertThatThrownBy(() -> mixture.restore(other.state())).isInstanceOf(MisuseException.class);
      assertThat(mixture.state()).isEqualTo(state);
      batches.next().close();
    }
  }

  private static MixedDataset.Builder mixture(Path path, double first, double second) {
    return MixedDataset.builder()
        .addDataset(ShardDataset.builder().setPath(path).setSampling(5).build(), first)
        .addDataset(ShardDataset.builder().setPath(path).setSampling(4).build(), second);
  }

  @Test
  void aMixturesStateIsRefusedByOneOfAnotherSeedWeightEndOrLengthAndSaysInWhat() {
    Path path = ImageShards.write(folder.resolve("shards"), 40, 17);
    ShardDataset.Builder twice = ShardDataset.builder().setPath(path).setSampling(5).optRepeat(2);
    ShardDataset.Builder once = ShardDataset.builder().setPath(path).setSampling(4);
    try (MixedDataset mixture = mixture(path, 1, 4).optSeed(7).build();
        MixedDataset seed = mixture(path, 1, 4).optSeed(~7).build();
        MixedDataset weights = mixture(path, 1.0625, 1.0625).optSeed(7).build();
        MixedDataset end = mixture(path, 1, 4).optSeed(7).optEnd(MixedDataset.End.FIRST).build();
        MixedDataset longer =
            MixedDataset.builder()
                .addDataset(twice.build(), 1)
                .addDataset(once.build(), 4)
                .optSeed(7)
                .build()) {
      String state = mixture.state();
      isRefused(seed, state, "seed=7 (now seed=-8)");
      isRefused(weights, state, "weights=1.0:4.0 (now weights=1.0625:1.0625)");
      isRefused(end, state, "end=ALL (now end=FIRST)");
      isRefused(longer, state, "batches=8:10 (now batches=16:10)");
      isRefused(
          mixture, state.replace("lengths=8,10", "lengths=9,10"), "0 of 9 batches (now of 8)");
      isRefused(mixture, state.replace("given=0,0", "given=9,0"), "9 of 8 batches (now of 8)");
      isRefused(mixture, state.replace("lengths=8,10", "lengths=8"), "not the state of a mixture");
      isRefused(mixture, state.replace("given=0,0", "given=0"), "not the state of a mixture");
      mixture.restore(state);
    }
  }

  private static void isRefused(MixedDataset mixture, String state, String words) {
    assertThatThrownBy(() -> mixture.restore(state))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(words);
  }

  private static MixedDataset mixture(Path first, Path second) {
    return MixedDataset.builder()
        .addDataset(ShardDataset.builder().setPath(first).setSampling(5).build(), 1)
        .addDataset(ShardDataset.builder().setPath(second).setSampling(4).build(), 1)
        .build();
  }

  @ParameterizedTest
  @EnumSource
  void mixturesGoOnAfterAnyBatch(MixedDataset.End end) throws Exception {
    Path first = ImageShards.write(folder.resolve("first"), 40, 17);
    Path second = ImageShards.write(folder.resolve("second"), 21, 30);
    goesOnAfterAnyBatch(slots ->
        MixedDataset.builder()
            .addDataset(
                ShardDataset.builder()
                    .setPath(first)
                    .setSampling(5)
                    .optShuffle(1)
                    .optPrefetch(slots)
                    .build(),
                2)
            .addDataset(
                ShardDataset.builder().setPath(second).setSampling(4).optShuffle(2).build(), 1)
            .optSeed(9)
            .optEnd(end)
            .build());
  }

  @Test
  void aMixtureGivesEachDatasetItsShare() throws Exception {
    Path path = ImageShards.write(folder.resolve("first"), 60, 17);
    try (NDManager manager = NDManager.newBaseManager();
        MixedDataset mixture =
            MixedDataset.builder()
                .addDataset(ShardDataset.builder().setPath(path).setSampling(1).build(), 3)
                .addDataset(ShardDataset.builder().setPath(path).setSampling(2).build(), 1)
                .optEnd(MixedDataset.End.FIRST)
                .build()) {
      List<String> batches = batches(mixture, manager, 1);
      long ofSecond = batches.stream().filter(text -> text.contains(",")).count();
      assertThat(batches.size() - ofSecond).isEqualTo(60);
      assertThat(ofSecond).isBetween(18L, 22L);
    }
  }

  @Test
  void aStateOfAnotherOrderIsRefusedAndChangesNothing() {
    Path path = ImageShards.write(folder.resolve("shards"), 50, 17);
    ShardDataset.Builder builder = ShardDataset.builder().setPath(path).setSampling(7);
    try (NDManager manager = NDManager.newBaseManager();
        ShardDataset dataset = builder.build();
        ShardDataset other = builder.setSampling(8).build()) {
      Iterator<Batch> batches = dataset.getData(manager).iterator();
      batches.next().close();
      String state = dataset.state();
      assertThatThrownBy(() -> dataset.restore(other.state())).isInstanceOf(MisuseException.class);
      assertThatThrownBy(() -> dataset.restore("epoch 3")).isInstanceOf(MisuseException.class);
      assertThat(dataset.state()).isEqualTo(state);
      batches.next().close();
    }
  }
}
