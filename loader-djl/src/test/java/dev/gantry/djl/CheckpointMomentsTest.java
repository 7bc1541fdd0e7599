// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// When checkpoints are saved during `EasyTrain.fit`. From each of them, a training can continue to
/// exactly the state in which the first training ends.
class CheckpointMomentsTest extends CheckpointListenerFixture {
  @ParameterizedTest
  @EnumSource
  void everyStep(SaveMode mode) throws IOException, TranslateException {
    assertThat(fit(mode, listener -> listener.optEverySteps(1)))
        .containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L, 11L, 12L);
    assertAllGoOn();
  }

  @Test
  void everyFewSteps() throws IOException, TranslateException {
    assertThat(fit(SaveMode.ASYNC, listener -> listener.optEverySteps(3)))
        .containsExactly(3L, 6L, 9L, 12L);
    assertAllGoOn();
  }

  @ParameterizedTest
  @EnumSource
  void everyEpoch(SaveMode mode) throws IOException, TranslateException {
    assertThat(fit(mode, listener -> listener.optEveryEpochs(1))).containsExactly(4L, 8L, 12L);
    assertAllGoOn();
  }

  @ParameterizedTest
  @EnumSource
  void everySecondEpochAndEveryFifthStep(SaveMode mode) throws IOException, TranslateException {
    assertThat(fit(mode, listener -> listener.optEveryEpochs(2).optEverySteps(5)))
        .containsExactly(5L, 8L, 10L, 12L);
    assertAllGoOn();
  }

  @Test
  void whenTimeHasPassed() throws IOException, TranslateException {
    Clock clock = new Clock();
    // The clock advances by a minute with each batch, and a due save is made at the next batch.
    assertThat(
            fit(
                SaveMode.SYNC,
                listener -> listener.optEvery(Duration.ofMinutes(3)).optClock(() -> clock.now),
                clock))
        .containsExactly(3L, 7L, 11L, 12L);
    assertAllGoOn();
  }

  @Test
  void timeThatRunsBackwardsIsRefused() {
    assertThatThrownBy(() -> CheckpointListener.builder().optEvery(Duration.ofSeconds(-1)))
        .isInstanceOf(MisuseException.class)
        .hasMessage("optEvery must not be negative (was PT-1S)");
  }

  @Test
  void atTheEndOfAnEpochTimeBeginsAnew() throws IOException, TranslateException {
    Clock clock = new Clock();
    assertThat(
            fit(
                SaveMode.SYNC,
                listener ->
                    listener
                        .optEvery(Duration.ofMinutes(3))
                        .optEveryEpochs(1)
                        .optClock(() -> clock.now),
                clock))
        .containsExactly(3L, 4L, 7L, 8L, 11L, 12L);
    assertAllGoOn();
  }

  @Test
  void goesOnCountingFromWhereTheTrainingWasRestored() throws IOException, TranslateException {
    var _ = fit(SaveMode.SYNC, listener -> listener.optEveryEpochs(1));
    PlainState end = uninterrupted();
    try (CheckpointSaver saver = saver(SaveMode.SYNC)) {
      CheckpointListener.Builder listener =
          CheckpointListener.builder().setSaver(saver).optEverySteps(3).optEveryEpochs(3);
      RestoredTraining restored;
      try (Training before = Fit.training()) {
        restored = saver.restore(4, before.model, before.trainer);
      }
      try (Training training = Fit.training(listener.optFrom(restored).build())) {
        saver.restore(4, training.model, training.trainer);
        Fit.fit(training, 2);
        assertThat(PlainState.of(training.trainer)).isEqualTo(end);
      }
      // Two checkpoints have the number of the last step; the one that was saved later counts.
      assertThat(saver.list().stream().map(StoredCheckpoint::step))
          .containsExactly(4L, 8L, 6L, 9L, 12L);
    }
    assertAllGoOn();
  }

  @ParameterizedTest
  @EnumSource(names = {"ASYNC", "OVERLAPPED"})
  void countsStepsNotBatches(SaveMode mode) throws IOException, TranslateException {
    Map<Long, PlainState> afterStep = new HashMap<>();
    try (CheckpointSaver saver = saver(mode);
        Training training =
            Fit.training(CheckpointListener.builder().setSaver(saver).optEverySteps(2).build())) {
      Trainer trainer = training.trainer;
      int batches = 0;
      for (int epoch = 0; epoch < Fit.EPOCHS; epoch++) {
        for (Batch batch : trainer.iterateDataset(Fit.samples(trainer))) {
          EasyTrain.trainBatch(trainer, batch);
          batches++;
          if (batches % 3 == 0) {
            trainer.step();
            afterStep.put(batches / 3L, PlainState.of(trainer));
          }
          batch.close();
        }
        trainer.notifyListeners(listener -> listener.onEpoch(trainer));
      }
      saver.await();
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(2L, 4L);
    }
    assertRestores(2, afterStep.get(2L));
    assertRestores(4, afterStep.get(4L));
  }

  /// The program's training loop does not notify listeners of epochs.
  @Test
  void theLastStepIsSavedWhenTheTrainerCloses() throws IOException, TranslateException {
    PlainState last;
    try (CheckpointSaver saver = saver(SaveMode.ASYNC)) {
      try (Training training =
          Fit.training(CheckpointListener.builder().setSaver(saver).optEverySteps(4).build())) {
        Fit.goOn(training, 0);
        saver.await();
        assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(4L, 8L);
        last = PlainState.of(training.trainer);
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(4L, 8L, 12L);
    }
    assertRestores(12, last);
  }

  private void assertRestores(long step, PlainState expected) {
    try (CheckpointSaver saver = saver(SaveMode.SYNC);
        Training training = Fit.training()) {
      saver.restore(step, training.model, training.trainer);
      assertThat(PlainState.of(training.trainer)).isEqualTo(expected);
    }
  }

  private static final class Clock extends TrainingListenerAdapter {
    private Instant now = Instant.EPOCH;

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batchData) {
      now = now.plus(Duration.ofMinutes(1));
    }
  }
}
