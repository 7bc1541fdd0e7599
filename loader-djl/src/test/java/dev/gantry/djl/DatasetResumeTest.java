package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.dataset.MixedOrder;
import dev.gantry.formats.dataset.Shuffle;
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
import org.junit.jupiter.params.provider.EnumSource;

@ExtendWith(NoLeaks.class)
class DatasetResumeTest {
  @TempDir Path folder;

  /// The labels of each batch, as text, from wherever the dataset stands.
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

  /// @param make a dataset that may prefetch so many batches
  private static void goesOnAfterAnyBatch(IntFunction<ResumableDataset> make) throws Exception {
    try (NDManager manager = NDManager.newBaseManager();
        ResumableDataset whole = make.apply(2)) {
      List<String> expected = batches(whole, manager, 1);
      int ofFirstEpoch = expected.size();
      expected.addAll(batches(whole, manager, 1));
      for (int taken = 0; taken <= ofFirstEpoch; taken++) {
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

  @ParameterizedTest
  @EnumSource
  void mixturesGoOnAfterAnyBatch(MixedOrder.End end) throws Exception {
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
                .optEnd(MixedOrder.End.FIRST)
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
    try (ShardDataset dataset = builder.build();
        ShardDataset other = builder.setSampling(8).build()) {
      String state = dataset.state();
      assertThatThrownBy(() -> dataset.restore(other.state())).isInstanceOf(MisuseException.class);
      assertThatThrownBy(() -> dataset.restore("epoch 3")).isInstanceOf(MisuseException.class);
      assertThat(dataset.state()).isEqualTo(state);
    }
  }
}
