// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class ShardDatasetTest {
  @TempDir Path folder;

  private ShardDataset.Builder shards(int samples, int perShard) {
    Path path = ImageShards.write(folder.resolve("shards"), samples, perShard);
    return ShardDataset.builder().setPath(path).setSampling(8).optPoison(true);
  }

  private static List<Long> labels(ShardDataset dataset, NDManager manager) {
    List<Long> labels = new ArrayList<>();
    for (Batch batch : dataset.getData(manager)) {
      try (batch) {
        LongStream.of(batch.getLabels().singletonOrThrow().toLongArray()).forEach(labels::add);
      }
    }
    return labels;
  }

  private static List<Long> numbers(long end) {
    return LongStream.range(0, end).boxed().toList();
  }

  @Test
  void batchesHaveTheFieldsOfTheSamplesInTheOrderOfTheFiles() {
    try (ShardDataset dataset = shards(20, 12).optData("image", "weights").build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(dataset.batchesPerEpoch()).hasValue(3);
      long first = 0;
      int number = 0;
      for (Batch batch : dataset.getData(manager)) {
        try (batch) {
          int size = Math.toIntExact(Math.min(8, 20 - first));
          assertThat(batch.getSize()).isEqualTo(size);
          assertThat(batch.getProgress()).isEqualTo(number++);
          assertThat(batch.getProgressTotal()).isEqualTo(3);
          NDArray image = batch.getData().get("image");
          assertThat(image.getShape()).isEqualTo(new Shape(size, 3, 5));
          assertThat(image.getDataType()).isEqualTo(DataType.UINT8);
          byte[] pixels = image.toByteArray();
          for (int i = 0; i < pixels.length; i++) {
            long sample = first + i / ImageShards.IMAGE_BYTES;
            assertThat(pixels[i]).isEqualTo(ImageShards.pixel(sample, i % ImageShards.IMAGE_BYTES));
          }
          NDArray weights = batch.getData().get("weights");
          assertThat(weights.getDataType()).isEqualTo(DataType.BFLOAT16);
          assertThat(weights.toType(DataType.FLOAT32, true).get(0).toFloatArray())
              .containsExactly(1, 2);
          assertThat(batch.getLabels().singletonOrThrow().toLongArray())
              .containsExactly(LongStream.range(first, first + size).toArray());
          first += size;
        }
      }
      assertThat(first).isEqualTo(20);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3, 32})
  void shuffledEpochsHaveAllSamplesOnceAndDiffer(int block) {
    try (ShardDataset dataset = shards(50, 17).optShuffle(new Shuffle.Blocks(7, block)).build();
        NDManager manager = NDManager.newBaseManager()) {
      List<Long> first = labels(dataset, manager);
      List<Long> second = labels(dataset, manager);
      assertThat(first).containsExactlyInAnyOrderElementsOf(numbers(50)).isNotEqualTo(second);
      assertThat(second).containsExactlyInAnyOrderElementsOf(numbers(50));
    }
  }

  @Test
  void ranksShareTheSamplesAndHaveAsManyBatchesEach() {
    Path path = ImageShards.write(folder.resolve("shards"), 51, 17);
    List<Long> all = new ArrayList<>();
    for (int rank = 0; rank < 3; rank++) {
      try (ShardDataset dataset =
              ShardDataset.builder()
                  .setPath(path)
                  .setSampling(4)
                  .optShuffle(3)
                  .optRank(rank, 3)
                  .build();
          NDManager manager = NDManager.newBaseManager()) {
        assertThat(dataset.batchesPerEpoch()).hasValue(5);
        all.addAll(labels(dataset, manager));
      }
    }
    assertThat(all).containsExactlyInAnyOrderElementsOf(numbers(51));
  }

  @Test
  void theLastBatchIsSmallerOrLeftOutOrFilledUp() {
    try (NDManager manager = NDManager.newBaseManager()) {
      ShardDataset.Builder builder = shards(20, 12);
      try (ShardDataset dataset = builder.optLastBatch(LastBatch.DROP).build()) {
        assertThat(labels(dataset, manager)).isEqualTo(numbers(16));
      }
      try (ShardDataset dataset = builder.optLastBatch(LastBatch.PAD).build()) {
        assertThat(labels(dataset, manager)).hasSize(24).containsAll(numbers(20));
      }
    }
  }

  @Test
  void epochsThatAreRepeatedFollowWithoutAnEnd() {
    try (ShardDataset dataset = shards(20, 12).optRepeat(3).build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(labels(dataset, manager)).hasSize(60);
      assertThat(dataset.state()).contains("epoch=3 batch=0");
    }
    try (ShardDataset dataset =
            ShardDataset.builder()
                .setPath(folder.resolve("shards"))
                .setSampling(8)
                .optRepeat()
                .build();
        NDManager manager = NDManager.newBaseManager()) {
      Iterator<Batch> batches = dataset.getData(manager).iterator();
      for (int i = 0; i < 10; i++) {
        batches.next().close();
      }
      assertThat(dataset.state()).contains("epoch=3 batch=1");
    }
  }

  @Test
  void normalisesAndTransforms() {
    try (ShardDataset dataset =
            shards(8, 8)
                .optNormalize("image", 0.5f, -1)
                .optData("image")
                .optTransform(data -> new NDList(data.singletonOrThrow().reshape(-1, 15)))
                .optLabelTransform(
                    labels -> new NDList(labels.singletonOrThrow().toType(DataType.FLOAT32, true)))
                .build();
        NDManager manager = NDManager.newBaseManager()) {
      for (Batch batch : dataset.getData(manager)) {
        try (batch) {
          NDArray image = batch.getData().singletonOrThrow();
          assertThat(image.getShape()).isEqualTo(new Shape(8, 15));
          assertThat(image.get(3).toFloatArray()[4]).isEqualTo(7 * 0.5f - 1);
          assertThat(batch.getLabels().singletonOrThrow().toFloatArray()[5]).isEqualTo(5);
        }
      }
    }
  }

  @Test
  void leavingEarlyLeavesNothingOpenOnceTheDatasetOrTheManagerIsClosed() {
    ShardDataset.Builder builder = shards(50, 17);
    try (ShardDataset dataset = builder.build();
        NDManager manager = NDManager.newBaseManager()) {
      dataset.getData(manager).iterator().next().close();
    }
    NoLeaks.assertNothingIsHeld();
    ShardDataset dataset = builder.build();
    try (NDManager manager = NDManager.newBaseManager()) {
      Iterator<Batch> batches = dataset.getData(manager).iterator();
      batches.next();
      assertThat(batches.hasNext()).isTrue();
    }
    NoLeaks.assertNothingIsHeld();
    dataset.close();
  }

  /// A training may leave many epochs early before its manager is closed.
  @Test
  void aLoopThatIsEndedByAnotherOneHoldsNothing() {
    try (NDManager manager = NDManager.newBaseManager()) {
      LiveResources.Snapshot before = NoLeaks.held();
      try (ShardDataset dataset = shards(50, 17).build()) {
        for (int i = 0; i < 2; i++) {
          dataset.getData(manager).iterator().next().close();
        }
      }
      assertThat(NoLeaks.held()).isEqualTo(before);
    }
  }

  @Test
  void aViewThatIsKeptKeepsItsBytes() {
    try (NDManager manager = NDManager.newBaseManager()) {
      List<NDArray> kept = new ArrayList<>();
      try (ShardDataset dataset = shards(80, 17).build()) {
        for (Batch batch : dataset.getData(manager)) {
          NDArray view = batch.getLabels().singletonOrThrow().get(new NDIndex("2:4"));
          view.attach(manager);
          kept.add(view);
          batch.close();
          batch.close();
        }
        assertThat(dataset.statistics().orElseThrow().slotsReplaced()).isPositive();
      }
      for (int i = 0; i < kept.size(); i++) {
        assertThat(kept.get(i).toLongArray()).containsExactly(8 * i + 2, 8 * i + 3);
      }
    }
  }

  @Test
  void aLoopThatIsEndedByAnotherOneIsToldAndSoIsTheLog() {
    try (ShardDataset dataset = shards(40, 40).build();
        NDManager manager = NDManager.newBaseManager()) {
      Iterator<Batch> first = dataset.getData(manager).iterator();
      first.next().close();
      String log =
          StandardError.during(() -> assertThat(labels(dataset, manager)).isEqualTo(numbers(40)));
      assertThat(log).containsOnlyOnce("getData was called again after 1 batches");
      assertThatThrownBy(first::hasNext)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("a later getData of the same dataset ended this iteration");
      assertThatThrownBy(first::next).isInstanceOf(MisuseException.class);
      assertThat(dataset.state()).contains("epoch=2 batch=0");
      assertThat(StandardError.during(() -> labels(dataset, manager))).doesNotContain("getData");
    }
  }

  /// Its end would look like that of an epoch, and the training would miss its batches.
  @Test
  void aLoopWithoutEndThatIsEndedBeforeItsFirstBatchIsTold() {
    try (ShardDataset dataset = shards(40, 40).optRepeat().build();
        NDManager manager = NDManager.newBaseManager()) {
      Iterator<Batch> first = dataset.getData(manager).iterator();
      String log = StandardError.during(() -> dataset.getData(manager).iterator().next().close());
      assertThat(log).contains("getData was called again after 0 batches");
      assertThatThrownBy(first::hasNext)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("a later getData of the same dataset ended this iteration");
    }
  }

  @Test
  void aLoopThatTookAllBatchesMayBeFollowedWithoutAWarning() {
    try (ShardDataset dataset = shards(40, 40).build();
        NDManager manager = NDManager.newBaseManager()) {
      Iterator<Batch> first = dataset.getData(manager).iterator();
      for (int i = 0; i < 5; i++) {
        first.next().close();
      }
      assertThat(StandardError.during(() -> labels(dataset, manager))).doesNotContain("getData");
    }
  }

  @Test
  void whoeverClosesNoBatchIsTold() {
    try (ShardDataset dataset = shards(50, 17).optPrefetch(3).build();
        NDManager manager = NDManager.newBaseManager()) {
      Iterator<Batch> batches = dataset.getData(manager).iterator();
      for (int i = 0; i < 3; i++) {
        batches.next();
      }
      assertThatThrownBy(batches::next)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("optPrefetch");
    }
  }

  @Test
  void batchesThatTheirManagersCloseAreClosed() {
    try (ShardDataset dataset = shards(40, 40).build();
        NDManager manager = NDManager.newBaseManager()) {
      int batches = 0;
      for (Batch batch : dataset.getData(manager)) {
        batch.getManager().close();
        batches++;
      }
      assertThat(batches).isEqualTo(5);
    }
  }

  @Test
  void batchesMayBeClosedInAnyOrderAndLaterThanTheDataset() {
    try (NDManager manager = NDManager.newBaseManager()) {
      Batch first;
      Batch second;
      try (ShardDataset dataset = shards(40, 40).optPrefetch(3).build()) {
        Iterator<Batch> batches = dataset.getData(manager).iterator();
        first = batches.next();
        second = batches.next();
        batches.next().close();
        second.close();
        second = batches.next();
      }
      assertThat(first.getLabels().singletonOrThrow().toLongArray()).startsWith(0, 1, 2);
      assertThat(second.getLabels().singletonOrThrow().toLongArray()).startsWith(24, 25);
      second.close();
      first.close();
      first.close();
    }
  }

  @Test
  void aTransformThatThrowsLosesItsBatchAndNothingElse() {
    LiveResources.Snapshot before = NoLeaks.held();
    // The manager outlives the dataset.
    try (NDManager manager = NDManager.newBaseManager()) {
      try (ShardDataset dataset =
          shards(40, 40)
              .optTransform(data -> {
                if (data.get("image").toByteArray()[0] == ImageShards.pixel(8, 0)) {
                  throw new IllegalStateException("not this one");
                }
                return data;
              })
              .build()) {
        Iterator<Batch> batches = dataset.getData(manager).iterator();
        batches.next().close();
        assertThatThrownBy(batches::next).hasMessage("not this one");
        for (int i = 2; i < 5; i++) {
          try (Batch batch = batches.next()) {
            assertThat(batch.getLabels().singletonOrThrow().toLongArray()).startsWith(8L * i);
          }
        }
        assertThat(batches.hasNext()).isFalse();
      }
      assertThat(NoLeaks.held()).isEqualTo(before);
    }
  }

  @Test
  void verifiesWhenAsked() throws Exception {
    ShardDataset.Builder builder = shards(50, 17);
    builder.optVerify(true).build().close();
    Path shard = folder.resolve("shards/shard-00001.bin");
    try (RandomAccessFile file = new RandomAccessFile(shard.toFile(), "rw")) {
      file.seek(100);
      int before = file.read();
      file.seek(100);
      file.write(before ^ 1);
    }
    assertThatThrownBy(builder::build)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("shard-00001.bin");
    Path whole = ImageShards.write(folder.resolve("whole"), 8, 8);
    ShardDataset.Builder both =
        ShardDataset.builder()
            .setPath(whole.toString(), folder.resolve("shards").toString())
            .setSampling(8);
    both.build().close();
    assertThatThrownBy(both.optVerify(true)::build)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("shard-00001.bin");
  }

  @Test
  void aShardThatIsGoneFailsItsBatchAndNotThoseBefore() throws Exception {
    try (ShardDataset dataset = shards(50, 16).build();
        NDManager manager = NDManager.newBaseManager()) {
      Files.delete(folder.resolve("shards/shard-00001.bin"));
      Iterator<Batch> batches = dataset.getData(manager).iterator();
      batches.next().close();
      batches.next().close();
      assertThatThrownBy(batches::next)
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("shard-00001.bin");
    }
  }
}
