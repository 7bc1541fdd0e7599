// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.internal.datasets.Alternatives;
import dev.gantry.djl.internal.datasets.ResumedPosition;
import dev.gantry.djl.internal.training.EarlierListeners;
import dev.gantry.djl.internal.training.OptimizerState;
import dev.gantry.djl.internal.training.TrainerParts;
import dev.gantry.djl.internal.training.TrainingMoment;
import dev.gantry.formats.checkpoint.SaveOutcome;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Saves checkpoints during a training by `EasyTrain.fit`, or by any loop that calls the trainer's
/// listeners.
///
/// A checkpoint holds the training's state exactly after its step; at the end of an epoch, after
/// the validation. DJL calls its listeners for a batch after the gradients are computed and before
/// the step. If a checkpoint of this step is due, the listener then copies the values that the
/// forward pass has changed. It saves the other values when the next batch, the end of the epoch
/// or the end of the training shows that the step was made. If one step uses the gradients of
/// several batches, the listener counts steps, not batches. It does not save a step that failed.
///
/// When the training ends after an epoch, and its last step was not saved, the listener saves that
/// step, too.
///
/// Unless the saver's `optMode` says otherwise, its saves are [SaveMode#ASYNC]. With [SaveMode#OVERLAPPED], it saves
/// within `Trainer#step`, when the last parameter is updated.
/// When training begins, it has the saver prepare the memory for snapshots.
///
/// A failed save is thrown into the training, unless `optLogFailedSaves` is chosen. The failure of
/// an asynchronous save is thrown by the next save or, at the latest, by `Trainer#close`; if it is
/// thrown there, call `Trainer#close` again, or close the model.
///
/// DJL calls listeners in the order in which they were added. Add this listener after DJL's
/// `EvaluatorTrainingListener`, so that the checkpoint at the end of an epoch has that epoch's
/// results as metrics, such as `validate_loss`. A checkpoint within an epoch has no metrics. Add
/// this listener before `EarlyStoppingListener`, which ends the training at the end of an epoch
/// and skips the listeners after it.
///
/// At the first batch, the listener throws a [dev.gantry.core.MisuseException] if `EarlyStoppingListener`
/// comes first, if it saves epochs and `optKeepBest` names a metric that this training does not have, or if
/// the optimizer is Adadelta, whose updates DJL does not count. Use a listener for one training only, on that
/// training's thread.
public final class CheckpointListener extends TrainingListenerAdapter {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointListener.class);

  private final CheckpointSaver saver;
  private final long everySteps;
  private final long everyEpochs;
  private final @Nullable Duration interval;
  private final Supplier<Optional<String>> datasetState;
  private final BooleanSupplier datasetEpochOver;

  /// The state of the training's dataset when its checkpoint was saved.
  private final Optional<String> restoredState;

  private final InstantSource clock;
  private final boolean logsFailedSaves;
  private long step;
  private long epoch;

  /// The last step that was saved, or restored. A skipped save does not change it.
  private long savedStep;

  /// Whether the saver skipped the last save because another save was being written.
  private boolean skipped;

  /// The counter of steps; null before the first batch.
  private @Nullable OptimizerState counter;

  private Instant lastSave;
  private @Nullable Due due;
  private boolean begun;

  /// Whether the dataset has reached the next epoch, and [#onEpoch] was not called for this one.
  private boolean epochOver;

  /// Whether the last step was saved, or its save was skipped, before the next batch came.
  private boolean savedInStep;

  /// How many restores the saver had made when the last epoch ended.
  private long restoresBefore;

  private boolean toldOfDataset;

  /// A checkpoint that is due after the next step; or, at the end of an epoch, a checkpoint that
  /// is saved only if the training ends there.
  private record Due(
      boolean epochEnd,
      TrainingMoment moment,
      Optional<String> datasetState,
      Map<String, Double> metrics) {}

  private CheckpointListener(Builder builder, CheckpointSaver saver) {
    this.saver = saver;
    this.everySteps = builder.everySteps;
    this.everyEpochs = builder.everyEpochs;
    this.interval = builder.interval;
    this.datasetState = builder.datasetState;
    this.datasetEpochOver = builder.datasetEpochOver;
    this.restoredState = builder.restoredState;
    this.clock = builder.clock;
    this.logsFailedSaves = builder.logsFailedSaves;
    this.step = builder.step;
    this.savedStep = builder.step;
    this.epoch = builder.epoch;
    this.lastSave = clock.instant();
  }

  /// Returns a builder; you must set its saver, and when to save: by steps, epochs or time.
  public static Builder builder() {
    return new Builder();
  }

  @Override
  public void onTrainingBatch(Trainer trainer, BatchData batchData) {
    if (!begun) {
      // The listeners are checked here and not when training begins, because listeners may be
      // added to an existing trainer.
      checkListeners(trainer);
      var _ = saver.prepare(trainer);
      restoredState
          .flatMap(
              saved -> datasetState.get().flatMap(state -> ResumedPosition.warning(saved, state)))
          .ifPresent(LOG::warn);
      begun = true;
    }
    dropEpochEnd();
    settle(trainer);
    drop();
    savedInStep = false;
    epochOver = datasetEpochOver.getAsBoolean();
    if (isDue(step + 1)) {
      // The dataset is asked before the copy is made: if asking threw afterwards, nothing would
      // close the copy.
      Optional<String> dataset = datasetState.get();
      due = new Due(false, saver.moment(trainer), dataset, Map.of());
      if (saver.overlaps()) {
        TrainerParts parts = TrainerParts.of(trainer);
        parts.fence().afterUpdates(parts.updatedParameters(), () -> saveInStep(trainer));
      }
    }
  }

  /// Saves as soon as the step is made, so that the snapshot overlaps the next batch.
  private void saveInStep(Trainer trainer) {
    Due now = due;
    // [#onEpoch] saves the end of an epoch.
    if (now != null && !epochOver) {
      OptimizerState counts = counter(trainer);
      if (counts.isStepped()) {
        counts.takeCounts();
        step++;
        saveStep(trainer, now);
        drop();
        savedInStep = true;
      }
    }
  }

  @Override
  public void onEpoch(Trainer trainer) {
    dropEpochEnd();
    boolean stepped = countStep(trainer);
    epoch++;
    epochOver = false;
    if (everyEpochs > 0 && epoch % everyEpochs == 0) {
      saveEpoch(trainer);
    } else if (savedInStep || (stepped && due != null)) {
      // The step was the epoch's last, so a training can resume from the end of the epoch.
      saveEpoch(trainer);
    }
    if (skipped || step > savedStep) {
      drop();
      Optional<String> dataset = datasetState.get();
      Map<String, Double> metrics = EarlierListeners.of(trainer, this).metrics();
      due = new Due(true, saver.moment(trainer), dataset, metrics);
      restoresBefore = saver.restores();
    }
  }

  /// Saves the end of an epoch. The saved state of the dataset is the beginning of the next epoch.
  private void saveEpoch(Trainer trainer) {
    drop();
    save(
        trainer,
        Optional.empty(),
        datasetState.get(),
        EarlierListeners.of(trainer, this).metrics());
  }

  private void saveStep(Trainer trainer, Due now) {
    if (now.datasetState().isEmpty() && !toldOfDataset) {
      toldOfDataset = true;
      LOG.warn(
          "step {} is saved within an epoch, and without the dataset's position: a training that"
              + " resumes from it begins the epoch anew. CheckpointListener.builder().optDataset"
              + " saves the position",
          step);
    }
    save(trainer, Optional.of(now.moment()), now.datasetState(), now.metrics());
  }

  private void checkListeners(Trainer trainer) {
    EarlierListeners earlier = EarlierListeners.of(trainer, this);
    earlier.requireNoEarlyStop();
    if (everyEpochs > 0) {
      saver.keepBestMetric().ifPresent(metric -> earlier.requireMetric(metric, trainer));
    } else {
      saver
          .keepBestMetric()
          .ifPresent(metric ->
              LOG.warn(
                  "optKeepBest is \"{}\", and checkpoints within an epoch have no metrics, so none"
                      + " of them is the best: add optEveryEpochs(1)",
                  metric));
    }
  }

  /// DJL calls this when the trainer closes, also after a failure. A step that was not made is not
  /// saved.
  @Override
  public void onTrainingEnd(Trainer trainer) {
    try {
      if (due != null) {
        // The save under way is awaited first, since the busy policy might otherwise skip this
        // save.
        boolean _ = orLog(saver::await);
        if (due.epochEnd()) {
          saveEnd(trainer, due);
        } else {
          settle(trainer);
        }
      }
    } finally {
      drop();
    }
    boolean _ = orLog(saver::await);
  }

  /// Saves the end of a training, unless the trainer's values have changed since the epoch ended.
  private void saveEnd(Trainer trainer, Due end) {
    if (counter(trainer).isUnchanged() && saver.restores() == restoresBefore) {
      save(trainer, Optional.of(end.moment()), end.datasetState(), end.metrics());
    }
  }

  /// Closes the copy of the epoch's end, which would be saved only if the training had ended
  /// there.
  private void dropEpochEnd() {
    if (due != null && due.epochEnd()) {
      drop();
    }
  }

  /// Counts the step that was made since the last batch, and saves it if a checkpoint is due.
  private void settle(Trainer trainer) {
    if (epochOver) {
      // The dataset is at the next epoch already: the evaluation failed, or the loop does not call
      // [#onEpoch].
      epoch++;
      epochOver = false;
    }
    if (countStep(trainer) && due != null) {
      saveStep(trainer, due);
    }
  }

  private OptimizerState counter(Trainer trainer) {
    OptimizerState known = counter;
    if (known == null) {
      known = OptimizerState.of(trainer);
      counter = known;
    }
    return known;
  }

  private boolean countStep(Trainer trainer) {
    OptimizerState counts = counter(trainer);
    boolean stepped = counts.isStepped();
    counts.takeCounts();
    if (stepped) {
      step++;
    }
    return stepped;
  }

  private boolean isDue(long nextStep) {
    return (everySteps > 0 && nextStep % everySteps == 0)
        || (interval != null
            && Duration.between(lastSave, clock.instant()).compareTo(interval) >= 0);
  }

  private void save(
      Trainer trainer,
      Optional<TrainingMoment> moment,
      Optional<String> dataset,
      Map<String, Double> metrics) {
    SaveRequest.Builder request =
        SaveRequest.builder()
            .setStep(step)
            .setModel(trainer.getModel())
            .optTrainer(trainer)
            .optEpoch(epoch);
    dataset.ifPresent(request::optDatasetState);
    metrics.forEach(request::optMetric);
    Runnable save =
        () -> {
          CompletableFuture<SaveOutcome> saved = saver.save(request.build(), moment);
          // The saver skips a save at once if another one is being written.
          skipped =
              saved.state() == Future.State.SUCCESS
                  && saved.resultNow() instanceof SaveOutcome.Skipped;
          if (!skipped) {
            savedStep = step;
          }
        };
    // The save is tried again, because the failure may be that of an earlier save, which is thrown
    // only once.
    if (!orLog(save) && saver.isAsync()) {
      boolean _ = orLog(save);
    }
    lastSave = clock.instant();
  }

  /// Runs a save. With `optLogFailedSaves`, logs a failure of a file or device instead of throwing it.
  ///
  /// @return false if the save failed and the failure was logged
  private boolean orLog(Runnable save) {
    try {
      save.run();
      return true;
    } catch (TransferException failed) {
      if (!logsFailedSaves) {
        throw failed;
      }
      LOG.error("A CHECKPOINT IS NOT SAVED, and the training goes on: {}", failed.getMessage());
      return false;
    }
  }

  private void drop() {
    if (due != null) {
      due.moment().close();
      due = null;
    }
  }

  /// Makes [CheckpointListener]s. Not thread-safe.
  public static final class Builder {
    private static final String POSITION = "the dataset's position";

    private final Alternatives alternatives = new Alternatives();
    private @Nullable CheckpointSaver saver;
    private long everySteps;
    private long everyEpochs;
    private @Nullable Duration interval;
    private Supplier<Optional<String>> datasetState = Optional::empty;
    private BooleanSupplier datasetEpochOver = () -> false;
    private Optional<String> restoredState = Optional.empty();
    private InstantSource clock = monotonic();
    private boolean logsFailedSaves;
    private long step;
    private long epoch;

    private Builder() {}

    /// The saver, which you close after the trainer. A save that its policy skips counts as saved,
    /// so the next save is made when it is due; the end of a training is saved all the same.
    public Builder setSaver(CheckpointSaver chosen) {
      saver = MisuseException.requireGiven("setSaver", chosen);
      return this;
    }

    /// Saves after each step whose number is a multiple of `steps`; default: not by steps.
    public Builder optEverySteps(long steps) {
      MisuseException.requireRange("optEverySteps", steps, 1, Long.MAX_VALUE);
      everySteps = steps;
      return this;
    }

    /// Saves at the end of each epoch whose number, from 1, is a multiple of `epochs`; default:
    /// not by epochs.
    public Builder optEveryEpochs(long epochs) {
      MisuseException.requireRange("optEveryEpochs", epochs, 1, Long.MAX_VALUE);
      everyEpochs = epochs;
      return this;
    }

    /// Saves after the first step that is made after this time has passed since the last save, or
    /// since [#build].
    public Builder optEvery(Duration time) {
      MisuseException.requireGiven("optEvery", time);
      if (time.isNegative()) {
        throw new MisuseException("optEvery must not be negative (was " + time + ")");
      }
      interval = time;
      return this;
    }

    /// Whether the failure of a save, for example because the disk is full, is logged as an error
    /// while the training goes on. The next save is made when it is due. Default: the failure is
    /// thrown into the training. A [MisuseException] is always thrown.
    public Builder optLogFailedSaves(boolean chosen) {
      logsFailedSaves = chosen;
      return this;
    }

    /// Sets a supplier of the dataset's position, which is called after a batch has been taken
    /// from the dataset. After the last batch of an epoch, the position must be the end of this
    /// epoch. If the evaluation fails then, the epoch does not count as completed.
    public Builder optDatasetState(Supplier<Optional<String>> state) {
      alternatives.call(POSITION, "optDatasetState", "a supplier");
      datasetState = MisuseException.requireGiven("optDatasetState", state);
      return this;
    }

    /// Saves the position of this dataset; [ResumableDataset#restore] resumes from there. An epoch whose
    /// steps were all made counts as completed, even if its evaluation fails.
    public Builder optDataset(ResumableDataset dataset) {
      MisuseException.requireGiven("optDataset", dataset);
      alternatives.call(POSITION, "optDataset", "a dataset");
      datasetState = () -> Optional.of(dataset.state());
      datasetEpochOver = dataset::isEpochOver;
      return this;
    }

    /// Counts steps and epochs from those of a restored training; default: from 0. If the dataset
    /// was not restored, it repeats batches, which is logged at the first batch.
    public Builder optFrom(RestoredTraining restored) {
      MisuseException.requireGiven("optFrom", restored);
      step = restored.step();
      epoch = restored.epoch();
      restoredState = restored.datasetState();
      return this;
    }

    /// A clock that only goes forward: the wall clock may be set back.
    private static InstantSource monotonic() {
      long begin = System.nanoTime();
      return () -> Instant.EPOCH.plusNanos(System.nanoTime() - begin);
    }

    /// Replaces the clock in tests.
    Builder optClock(InstantSource chosen) {
      clock = chosen;
      return this;
    }

    /// @throws MisuseException if the saver is missing, or no option that says when to save is set
    public CheckpointListener build() {
      if (everySteps == 0 && everyEpochs == 0 && interval == null) {
        throw new MisuseException(
            "one of optEverySteps, optEveryEpochs and optEvery must be set: it says when to save");
      }
      return new CheckpointListener(this, MisuseException.requireGiven("setSaver", saver));
    }
  }
}
