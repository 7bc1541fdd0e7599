// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.EasyTrain;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.translate.TranslateException;
import ai.djl.util.Progress;
import dev.gantry.djl.internal.datasets.ResumedPosition;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A training that fails between the last step of an epoch and the next epoch. When it continues,
/// the dataset and the epoch agree, so the training makes as many epochs as were requested.
@ExtendWith(NoLeaks.class)
class EpochEndTest {
  private static final int EPOCHS = 3;
  private static final int BATCHES = 4;

  @TempDir(factory = InMemory.class)
  private Path folder;

  @Test
  void trainingFromShardsGoesOnBehindAnEvaluationThatFailed() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 4 * BATCHES, 9);
    assertGoesOn(() -> shards(path).build());
  }

  @Test
  void trainingFromAStreamGoesOnBehindAnEvaluationThatFailed() throws Exception {
    List<Path> files = ImageRecords.write(folder, 4 * BATCHES, 2, Compression.NONE);
    assertGoesOn(() ->
        TfRecordDataset.builder()
            .setPath(files)
            .addFeature(FeatureSpec.bytes("image", 3, 5))
            .addFeature(FeatureSpec.int64s("label"))
            .setSampling(4)
            .optNormalize("image", 1 / 255f, 0)
            .optTransform(EpochEndTest::inputs)
            .optLabelTransform(EpochEndTest::classes)
            .build());
  }

  @Test
  void trainingFromAMixtureGoesOnBehindAnEvaluationThatFailed() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 2 * BATCHES, 9);
    assertGoesOn(() ->
        MixedDataset.builder()
            .addDataset(shards(path).build(), 1)
            .addDataset(shards(path).build(), 1)
            .build());
  }

  /// The first batch is still being read when the test asks for the state.
  @Test
  void theStateOfAMixtureDoesNotWaitForABatch() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 2 * BATCHES, 9);
    try (Stream<Path> files = Files.list(path)) {
      for (Path file : files.toList()) {
        MemoryStore.put("mixed/" + file.getFileName(), Files.readAllBytes(file));
      }
    }
    CountDownLatch opening = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    try (MixedDataset mixture =
            MixedDataset.builder()
                .addDataset(plainShards(path).setPath("memory://mixed/").build(), 1)
                .build();
        NDManager manager = NDManager.newBaseManager()) {
      MemoryStore.beforeEachOpen(_ -> {
        opening.countDown();
        await(goOn);
      });
      String before = mixture.state();
      FutureTask<Integer> training =
          new FutureTask<>(() -> {
            try (Batch batch = mixture.getData(manager).iterator().next()) {
              return batch.getSize();
            }
          });
      Thread.ofPlatform().start(training);
      await(opening);
      assertThat(mixture.state()).isEqualTo(before);
      assertThat(training).isNotDone();
      goOn.countDown();
      assertThat(training.get()).isEqualTo(4);
      assertThat(mixture.state()).isNotEqualTo(before);
    } finally {
      MemoryStore.beforeEachOpen(null);
    }
  }

  /// A listener would count an epoch at each batch.
  @Test
  void aMixtureThatWentOnIsNotAtTheEndOfAnEpoch() {
    Path path = ImageShards.write(folder.resolve("shards"), 2 * BATCHES, 9);
    try (MixedDataset mixture =
            MixedDataset.builder().addDataset(plainShards(path).build(), 1).build();
        NDManager manager = NDManager.newBaseManager()) {
      String begin = mixture.state();
      assertThat(mixture.isEpochOver()).isFalse();
      for (int epoch = 0; epoch < 2; epoch++) {
        Iterator<Batch> batches = mixture.getData(manager).iterator();
        batches.next().close();
        assertThat(mixture.isEpochOver()).isFalse();
        batches.next().close();
        assertThat(mixture.isEpochOver()).isTrue();
        assertThat(mixture.state()).isNotEqualTo(begin);
        assertThat(mixture.isEpochOver()).isTrue();
      }
      mixture.restore(begin);
      assertThat(mixture.isEpochOver()).isFalse();
    }
  }

  @Test
  void aDatasetThatGaveTheCheckpointsLastBatchAgainIsToldOf() {
    Path path = ImageShards.write(folder.resolve("shards"), 4 * BATCHES, 9);
    try (ShardDataset dataset = plainShards(path).build();
        NDManager manager = NDManager.newBaseManager()) {
      Iterator<Batch> batches = dataset.getData(manager).iterator();
      batches.next().close();
      String saved = dataset.state();
      assertThat(ResumedPosition.warning(saved, saved)).isPresent();
      batches.next().close();
      assertThat(ResumedPosition.warning(saved, dataset.state())).isEmpty();
    }
  }

  /// Returns the builder of a dataset with four samples in a batch.
  static ShardDataset.Builder shards(Path path) {
    return plainShards(path).optNormalize("image", 1 / 255f, 0).optTransform(EpochEndTest::inputs);
  }

  /// Returns the builder without normalised or transformed images.
  static ShardDataset.Builder plainShards(Path path) {
    return ShardDataset.builder()
        .setPath(path)
        .setSampling(4)
        .optData("image")
        .optLabelTransform(EpochEndTest::classes);
  }

  /// Turns images into the inputs of [Training].
  static NDList inputs(NDList images) {
    return new NDList(
        images.singletonOrThrow().flatten(1, -1).get(":, :6").reshape(new Shape(-1, 6)));
  }

  private static NDList classes(NDList labels) {
    return new NDList(labels.singletonOrThrow().mod(3).toType(DataType.FLOAT32, false));
  }

  private void assertGoesOn(Supplier<ResumableDataset> datasets) throws Exception {
    PlainState end;
    try (ResumableDataset whole = datasets.get();
        Training training = Fit.training()) {
      EasyTrain.fit(training.trainer, EPOCHS, whole, null);
      end = PlainState.of(training.trainer);
    }
    try (CheckpointSaver saver = saver()) {
      try (ResumableDataset dataset = datasets.get();
          Training failing = Fit.training(listener(saver, dataset).build())) {
        assertThatThrownBy(
                () -> EasyTrain.fit(failing.trainer, EPOCHS, dataset, new FailingDataset()))
            .hasMessage("on purpose");
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly((long) BATCHES);
      try (ResumableDataset dataset = datasets.get();
          Training resumed = Fit.training()) {
        RestoredTraining restored = saver.restoreLatest(resumed.model, resumed.trainer).get();
        assertThat(firstBatches(saver, restored, dataset, resumed))
            .containsOnlyOnce("and the dataset is not behind it (epoch 0, batch 1)");
        dataset.restore(restored.datasetState().orElseThrow());
        assertThat(firstBatches(saver, restored, dataset, resumed))
            .doesNotContain("is not behind it");
        dataset.restore(restored.datasetState().orElseThrow());
        EasyTrain.fit(resumed.trainer, EPOCHS - (int) restored.epoch(), dataset, null);
        assertThat(PlainState.of(resumed.trainer)).isEqualTo(end);
      }
    }
  }

  /// Returns the log of the first two batches of a resumed training.
  private static String firstBatches(
      CheckpointSaver saver,
      RestoredTraining restored,
      ResumableDataset dataset,
      Training training) {
    CheckpointListener listener = listener(saver, dataset).optFrom(restored).build();
    return StandardError.during(() -> {
      try (NDManager manager = training.trainer.getManager().newSubManager()) {
        Iterator<Batch> batches = dataset.getData(manager).iterator();
        if (!batches.hasNext()) {
          // The stream's epoch has no batch left.
          batches = dataset.getData(manager).iterator();
        }
        for (int i = 0; i < 2; i++) {
          batches.next().close();
          listener.onTrainingBatch(training.trainer, null);
        }
      } catch (IOException | TranslateException e) {
        throw new IllegalStateException(e);
      }
    });
  }

  @Test
  void aTrainingThatGoesOnInTheSameProcessCountsTheEpochWhoseEvaluationFailed() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 4 * BATCHES, 9);
    try (CheckpointSaver saver = saver();
        ResumableDataset dataset = shards(path).build();
        Training training = Fit.training(listener(saver, dataset).build())) {
      assertThatThrownBy(
              () -> EasyTrain.fit(training.trainer, EPOCHS, dataset, new FailingDataset()))
          .hasMessage("on purpose");
      EasyTrain.fit(training.trainer, 1, dataset, null);
      assertEachEpochCounted(saver, training, 2);
    }
  }

  @Test
  void eachEpochCountsOnce() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), 4 * BATCHES, 9);
    try (CheckpointSaver saver = saver();
        ResumableDataset dataset = shards(path).build();
        Training training = Fit.training(listener(saver, dataset).build())) {
      EasyTrain.fit(training.trainer, EPOCHS, dataset, null);
      assertEachEpochCounted(saver, training, EPOCHS);
    }
  }

  private static void assertEachEpochCounted(CheckpointSaver saver, Training training, int epochs) {
    for (long epoch = 1; epoch <= epochs; epoch++) {
      assertThat(saver.restore(epoch * BATCHES, training.model, training.trainer).epoch())
          .isEqualTo(epoch);
    }
  }

  private CheckpointSaver saver() {
    return CheckpointSaver.builder().setPath(folder.resolve("run")).build();
  }

  private static CheckpointListener.Builder listener(
      CheckpointSaver saver, ResumableDataset dataset) {
    return CheckpointListener.builder().setSaver(saver).optEverySteps(BATCHES).optDataset(dataset);
  }

  private static final class FailingDataset implements Dataset {
    @Override
    public Iterable<Batch> getData(NDManager manager) {
      throw new IllegalStateException("on purpose");
    }

    @Override
    public void prepare(Progress progress) {}
  }
}
