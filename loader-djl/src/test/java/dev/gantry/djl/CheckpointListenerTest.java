// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.engine.Engine;
import ai.djl.training.Trainer;
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
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/// Checkpoints that are saved during `EasyTrain.fit`: their metrics, the other listeners, and what is
/// given back.
class CheckpointListenerTest extends CheckpointListenerFixture {
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
      CheckpointListener.Builder positioned = builder.optDataset(new CheckpointSaverTest.Rows());
      assertThatThrownBy(() -> positioned.optDatasetState(Optional::empty))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("both choose the dataset's position");
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
