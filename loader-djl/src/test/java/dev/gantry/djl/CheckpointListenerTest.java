// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.engine.Engine;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.listener.EarlyStoppingListener;
import ai.djl.training.listener.EpochTrainingListener;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// From each checkpoint that is saved during `EasyTrain.fit`, a training can continue to exactly
/// the state in which the first training ends.
@ExtendWith(NoLeaks.class)
class CheckpointListenerTest {
  @TempDir(factory = InMemory.class)
  private Path folder;

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

  @Test
  void savesTheFiguresOfTheListenersBeforeIt() throws IOException, TranslateException {
    var _ =
        fit(
            SaveMode.SYNC,
            listener -> listener.optEveryEpochs(1).optEverySteps(6),
            new EpochTrainingListener(),
            new EvaluatorTrainingListener());
    try (CheckpointSaver saver = saver(SaveMode.SYNC)) {
      List<StoredCheckpoint> saved = saver.list();
      assertThat(saved.get(0).metrics()).containsKeys("train_loss", "validate_loss");
      assertThat(saved.get(0).metrics().get("validate_loss")).isBetween(0.5, 2.0);
      // A checkpoint in mid-epoch has no metrics, because those of the epoch before belong to
      // other weights.
      assertThat(saved.get(1).step()).isEqualTo(6);
      assertThat(saved.get(1).metrics()).isEmpty();
    }
    assertAllGoOn();
  }

  @Test
  void aSaveInMidEpochDoesNotTakeThePlaceOfTheBest() throws IOException, TranslateException {
    List<Double> losses = new ArrayList<>();
    try (CheckpointSaver saver =
            CheckpointSaver.builder()
                .setPath(folder)
                .optKeepBest("validate_loss", 1, Retention.Goal.MINIMIZE)
                .build();
        Training training =
            Fit.training(
                new EvaluatorTrainingListener(),
                CheckpointListener.builder()
                    .setSaver(saver)
                    .optEveryEpochs(1)
                    .optEverySteps(3)
                    .build(),
                onEpoch(trainer ->
                    losses.add(trainer.getTrainingResult().getValidateLoss().doubleValue())))) {
      Fit.fit(training);
      long best = 4L * (1 + losses.indexOf(Collections.min(losses)));
      // On the CPU the best epoch comes before the last; a GPU draws other random numbers.
      Assumptions.assumeTrue(best < 12 || Engine.getInstance().getGpuCount() == 0);
      assertThat(best).isLessThan(12);
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(best, 12L);
      assertThat(saver.best()).map(StoredCheckpoint::step).contains(best);
    }
  }

  @Test
  void figuresThatAreMeasuredLaterAreNotSavedAsThoseOfTheNextEpoch()
      throws IOException, TranslateException {
    try (CheckpointSaver saver = saver(SaveMode.SYNC);
        Training training =
            Fit.training(
                CheckpointListener.builder().setSaver(saver).optEveryEpochs(1).build(),
                new EvaluatorTrainingListener())) {
      Fit.fit(training);
      assertThat(saver.list()).hasSize(3).allMatch(one -> one.metrics().isEmpty());
    }
  }

  /// With several workers, another listener may let only the first worker save.
  @Test
  void anotherListenerMayTellIt() throws IOException, TranslateException {
    try (CheckpointSaver saver = saver(SaveMode.SYNC)) {
      CheckpointListener told =
          CheckpointListener.builder().setSaver(saver).optEveryEpochs(1).build();
      TrainingListener telling =
          new TrainingListenerAdapter() {
            @Override
            public void onTrainingBatch(Trainer trainer, BatchData batchData) {
              told.onTrainingBatch(trainer, batchData);
            }

            @Override
            public void onEpoch(Trainer trainer) {
              told.onEpoch(trainer);
            }
          };
      try (Training training =
          Fit.training(new EvaluatorTrainingListener(), telling, stopAfter(Duration.ofDays(1)))) {
        Fit.fit(training);
      }
      assertThat(saver.list())
          .hasSize(3)
          .allMatch(one -> one.metrics().containsKey("validate_loss"));
    }
  }

  @Test
  void anEarlyStopAfterItIsOfAnEpochThatIsSaved() {
    try (CheckpointSaver saver = saver(SaveMode.SYNC);
        Training training =
            Fit.training(
                new EpochTrainingListener(),
                new EvaluatorTrainingListener(),
                CheckpointListener.builder().setSaver(saver).optEveryEpochs(1).build(),
                stopAfter(Duration.ZERO))) {
      assertThatThrownBy(() -> Fit.fit(training))
          .isInstanceOf(EarlyStoppingListener.EarlyStoppedException.class);
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(4L);
    }
  }

  @Test
  void anEarlyStopBeforeItIsRefusedAtTheFirstBatch() {
    try (CheckpointSaver saver = saver(SaveMode.SYNC);
        Training training =
            Fit.training(
                new EpochTrainingListener(),
                new EvaluatorTrainingListener(),
                stopAfter(Duration.ZERO),
                CheckpointListener.builder().setSaver(saver).optEveryEpochs(1).build())) {
      PlainState before = PlainState.of(training.trainer);
      assertThatThrownBy(() -> Fit.fit(training))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("CheckpointListener must come before EarlyStoppingListener");
      assertThat(PlainState.of(training.trainer).counts()).isEqualTo(before.counts());
    }
  }

  private static TrainingListener stopAfter(Duration time) {
    return EarlyStoppingListener.builder().optMaxDuration(time).optEpochPatience(100).build();
  }

  private static TrainingListener onEpoch(Consumer<Trainer> work) {
    return new TrainingListenerAdapter() {
      @Override
      public void onEpoch(Trainer trainer) {
        work.accept(trainer);
      }
    };
  }

  @Test
  void aMetricToKeepTheBestByThatTheTrainingLacksIsRefusedAtTheFirstBatch() {
    assertThatThrownBy(() -> keepBest("accuracy", new EvaluatorTrainingListener()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optKeepBest is \"accuracy\"")
        .hasMessageContaining(
            "train_SoftmaxCrossEntropyLoss, train_loss, validate_SoftmaxCrossEntropyLoss,"
                + " validate_loss");
    assertThatThrownBy(() -> keepBest("validate_loss"))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optKeepBest is \"validate_loss\"")
        .hasMessageContaining("EvaluatorTrainingListener");
  }

  private void keepBest(String metric, TrainingListener... before)
      throws IOException, TranslateException {
    try (CheckpointSaver saver =
        CheckpointSaver.builder()
            .setPath(folder)
            .optKeepBest(metric, 1, Retention.Goal.MINIMIZE)
            .build()) {
      List<TrainingListener> listeners = new ArrayList<>(List.of(before));
      listeners.add(CheckpointListener.builder().setSaver(saver).optEveryEpochs(1).build());
      try (Training training = Fit.training(listeners.toArray(TrainingListener[]::new))) {
        Fit.fit(training, 1);
      }
    }
  }

  @Test
  void mayComeBeforeTheOthers() throws IOException, TranslateException {
    try (CheckpointSaver saver = saver(SaveMode.SYNC);
        Training training =
            Fit.training(
                CheckpointListener.builder().setSaver(saver).optEverySteps(2).build(),
                new EpochTrainingListener(),
                new EvaluatorTrainingListener())) {
      Fit.fit(training);
      assertThat(saver.list()).hasSize(6);
      assertThat(saver.list().get(1).metrics()).isEmpty();
    }
    assertAllGoOn();
  }

  @Test
  void asksTheDatasetWhereItStandsWhenItsBatchIsTaken() throws IOException, TranslateException {
    Counter batches = new Counter();
    var _ =
        fit(
            SaveMode.SYNC,
            listener ->
                listener
                    .optEverySteps(3)
                    .optDatasetState(() -> Optional.of(batches.count + " batches")),
            batches);
    try (CheckpointSaver saver = saver(SaveMode.SYNC);
        Training training = Fit.training()) {
      for (long step : new long[] {3, 6, 9, 12}) {
        assertThat(saver.restore(step, training.model, training.trainer).datasetState())
            .contains(step + " batches");
      }
    }
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

  @Test
  void anOptimizerThatAnotherTrainingHasUsed() throws IOException, TranslateException {
    Optimizer optimizer = Optimizers.adam();
    try (Training other = new Training(Training.perceptron(), optimizer)) {
      other.steps(0, 20);
    }
    try (CheckpointSaver saver = saver(SaveMode.SYNC);
        Training training =
            new Training(
                Training.perceptron(),
                optimizer,
                CheckpointListener.builder().setSaver(saver).optEverySteps(5).build())) {
      Fit.fit(training);
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(5L, 10L);
    }
  }

  @Test
  void copiesAreGivenBack() throws IOException, TranslateException {
    List<Integer> held = new ArrayList<>();
    TrainingListener watch =
        new TrainingListenerAdapter() {
          @Override
          public void onTrainingBatch(Trainer trainer, BatchData batchData) {
            held.add(trainer.getManager().getManagedArrays().size());
          }

          @Override
          public void onEpoch(Trainer trainer) {
            held.add(trainer.getManager().getManagedArrays().size());
          }
        };
    try (CheckpointSaver saver = saver(SaveMode.ASYNC);
        Training training =
            Fit.training(
                CheckpointListener.builder().setSaver(saver).optEverySteps(2).build(), watch)) {
      Fit.fit(training, 2);
      int batch = held.getFirst();
      int epoch = held.getLast();
      // The trainer's manager holds copies of the running mean and variance from a batch to its
      // step.
      assertThat(held.subList(0, 5)).containsExactly(batch, batch + 2, batch, batch + 2, epoch);
      assertThat(held.subList(5, 10)).isEqualTo(held.subList(0, 5));
      assertThat(training.trainer.getManager().getManagedArrays()).hasSize(epoch);
    }
  }

  @Test
  void saysWhatItNeeds() {
    assertThatThrownBy(() -> CheckpointListener.builder().optEverySteps(1).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("setSaver must be given (was null)");
    try (CheckpointSaver saver = saver(SaveMode.SYNC)) {
      CheckpointListener.Builder builder = CheckpointListener.builder().setSaver(saver);
      assertThatThrownBy(builder::build)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("one of optEverySteps, optEveryEpochs and optEvery must be set");
      assertThatThrownBy(() -> builder.optEverySteps(-1))
          .isInstanceOf(MisuseException.class)
          .hasMessage("optEverySteps must be at least 1 (was -1)");
    }
  }

  private CheckpointSaver saver(SaveMode mode) {
    return CheckpointSaver.builder().setPath(folder).optMode(mode).build();
  }

  /// Trains all epochs.
  ///
  /// @return the steps that were saved
  private List<Long> fit(
      SaveMode mode, UnaryOperator<CheckpointListener.Builder> options, TrainingListener... before)
      throws IOException, TranslateException {
    PlainState end = uninterrupted();
    try (CheckpointSaver saver = saver(mode)) {
      CheckpointListener.Builder builder = CheckpointListener.builder().setSaver(saver);
      List<TrainingListener> listeners = new ArrayList<>(List.of(before));
      listeners.add(options.apply(builder).build());
      try (Training training = Fit.training(listeners.toArray(TrainingListener[]::new))) {
        Fit.fit(training);
        assertThat(PlainState.of(training.trainer)).isEqualTo(end);
      }
      return saver.list().stream().map(StoredCheckpoint::step).toList();
    }
  }

  private static PlainState uninterrupted() throws IOException, TranslateException {
    try (Training training = Fit.training()) {
      Fit.fit(training);
      return PlainState.of(training.trainer);
    }
  }

  private void assertAllGoOn() throws IOException, TranslateException {
    PlainState end = uninterrupted();
    try (CheckpointSaver saver = saver(SaveMode.SYNC)) {
      assertThat(saver.list()).isNotEmpty();
      for (StoredCheckpoint checkpoint : saver.list()) {
        try (Training training = Fit.training()) {
          Training.seed(99);
          RestoredTraining restored =
              saver.restore(checkpoint.step(), training.model, training.trainer);
          assertThat(restored.epoch()).isEqualTo(restored.step() / Fit.BATCHES);
          Fit.goOn(training, restored.step());
          assertThat(PlainState.of(training.trainer))
              .as("from step %s", checkpoint.step())
              .isEqualTo(end);
        }
      }
    }
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

  private static final class Counter extends TrainingListenerAdapter {
    private int count;

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batchData) {
      count++;
    }
  }
}
