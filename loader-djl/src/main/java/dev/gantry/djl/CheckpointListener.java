package dev.gantry.djl;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.EarlierListeners;
import dev.gantry.djl.internal.training.OptimizerState;
import dev.gantry.djl.internal.training.TrainingMoment;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Saves checkpoints while `EasyTrain.fit`, or any loop that tells its listeners, trains.
///
/// DJL tells of a batch when its gradients are there and its step is still to come. What the
/// batch's forward pass has changed is copied then, if a checkpoint of this step is due; the rest
/// is saved when the next batch, the end of the epoch or the end of the training shows that the
/// step was made. So a checkpoint is of the moment just after its step, exactly. At the end of an
/// epoch it is of the moment after the validation, when the next epoch begins. With gradients of
/// several batches in one step, steps are counted, not batches; a step that fails on its way is not
/// saved.
///
/// What a save throws is thrown into the training; of an asynchronous one, into the next save or,
/// at the latest, by `Trainer#close`, which then must be called again or left to the model's.
///
/// DJL tells listeners in the order in which they were added. Add this one after DJL's
/// `EvaluatorTrainingListener`: then the save at the end of an epoch has that epoch's figures as
/// metrics, such as `validate_loss`. A save within an epoch has none. Add it before
/// `EarlyStoppingListener`, which ends the training at the end of an epoch, and tells no listener
/// after it.
///
/// The first batch is refused with a [dev.gantry.core.MisuseException] where `EarlyStoppingListener`
/// comes first, where epochs are saved and `optKeepBest` names a metric that this training does not
/// have, and with Adadelta, of which DJL counts no updates. For one training, on its thread.
public final class CheckpointListener extends TrainingListenerAdapter {
  private final CheckpointSaver saver;
  private final long everySteps;
  private final long everyEpochs;
  private final @Nullable Duration interval;
  private final Supplier<Optional<String>> datasetState;
  private final BooleanSupplier datasetEpochOver;
  private final InstantSource clock;
  private long step;
  private long epoch;

  /// How often each parameter was updated when that was looked at last; empty before the first
  /// batch.
  private Map<String, Integer> updates = Map.of();

  private Instant lastSave;
  private @Nullable Due due;
  private boolean begun;

  /// Whether the dataset is at the next epoch's beginning, and the end of this one was not told.
  private boolean epochOver;

  /// A checkpoint that is due after the step to come.
  private record Due(TrainingMoment moment, Optional<String> datasetState) {}

  private CheckpointListener(Builder builder, CheckpointSaver saver) {
    this.saver = saver;
    this.everySteps = builder.everySteps;
    this.everyEpochs = builder.everyEpochs;
    this.interval = builder.interval;
    this.datasetState = builder.datasetState;
    this.datasetEpochOver = builder.datasetEpochOver;
    this.clock = builder.clock;
    this.step = builder.step;
    this.epoch = builder.epoch;
    this.lastSave = clock.instant();
  }

  public static Builder builder() {
    return new Builder();
  }

  @Override
  public void onTrainingBatch(Trainer trainer, BatchData batchData) {
    if (!begun) {
      // Not when training begins: listeners may be added to a trainer that is there already.
      checkListeners(trainer);
      begun = true;
    }
    settle(trainer);
    drop();
    epochOver = datasetEpochOver.getAsBoolean();
    if (isDue(step + 1)) {
      // First what may fail: a copy has to be closed.
      Optional<String> dataset = datasetState.get();
      due = new Due(saver.moment(trainer), dataset);
    }
  }

  @Override
  public void onEpoch(Trainer trainer) {
    boolean stepped = countStep(trainer);
    epoch++;
    epochOver = false;
    if (everyEpochs > 0 && epoch % everyEpochs == 0) {
      saveEpoch(trainer);
    } else if (stepped && due != null) {
      // The step was the epoch's last: it may go on from here, too.
      saveEpoch(trainer);
    }
  }

  /// All is as it is when the next epoch begins.
  private void saveEpoch(Trainer trainer) {
    drop();
    save(
        trainer,
        Optional.empty(),
        datasetState.get(),
        EarlierListeners.of(trainer, this).metrics());
  }

  private void checkListeners(Trainer trainer) {
    EarlierListeners earlier = EarlierListeners.of(trainer, this);
    earlier.requireNoEarlyStop();
    if (everyEpochs > 0) {
      saver.keepBestMetric().ifPresent(metric -> earlier.requireMetric(metric, trainer));
    }
  }

  /// When the trainer closes, also after a failure: then a step that was not made is not saved.
  @Override
  public void onTrainingEnd(Trainer trainer) {
    try {
      if (due != null) {
        settle(trainer);
      }
    } finally {
      drop();
    }
    saver.await();
  }

  /// Counts the step that was made since the last batch, and saves it if that was due.
  private void settle(Trainer trainer) {
    if (epochOver) {
      // Its evaluation has failed, or the loop tells of no epochs: the dataset is at the next one.
      epoch++;
      epochOver = false;
    }
    if (countStep(trainer) && due != null) {
      save(trainer, Optional.of(due.moment()), due.datasetState(), Map.of());
    }
  }

  private boolean countStep(Trainer trainer) {
    Map<String, Integer> now = OptimizerState.of(trainer).updateCounts();
    // Of each: a step that failed on its way is none.
    boolean stepped =
        !updates.isEmpty()
            && updates.entrySet().stream()
                // One that was frozen since is not counted any more.
                .filter(before -> now.containsKey(before.getKey()))
                .allMatch(before -> now.getOrDefault(before.getKey(), 0) > before.getValue());
    updates = now;
    if (stepped) {
      step++;
    }
    return stepped;
  }

  private boolean isDue(long nextStep) {
    return (everySteps > 0 && nextStep % everySteps == 0)
        || (interval != null && !clock.instant().isBefore(lastSave.plus(interval)));
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
    var _ = saver.save(request.build(), moment);
    lastSave = clock.instant();
  }

  private void drop() {
    if (due != null) {
      due.moment().close();
      due = null;
    }
  }

  /// Makes [CheckpointListener]s. For one thread.
  public static final class Builder {
    private @Nullable CheckpointSaver saver;
    private long everySteps;
    private long everyEpochs;
    private @Nullable Duration interval;
    private Supplier<Optional<String>> datasetState = Optional::empty;
    private BooleanSupplier datasetEpochOver = () -> false;
    private InstantSource clock = InstantSource.system();
    private long step;
    private long epoch;

    private Builder() {}

    /// Where the checkpoints go. It stays the caller's to close, after the trainer. What its policy
    /// skips counts as saved: the next save is made when it is due.
    public Builder setSaver(CheckpointSaver chosen) {
      MisuseException.requireGiven("setSaver", chosen);
      saver = chosen;
      return this;
    }

    /// Saves each step that is a multiple of this; 0 for none.
    public Builder optEverySteps(long steps) {
      MisuseException.requireRange("optEverySteps", steps, 1, Long.MAX_VALUE);
      everySteps = steps;
      return this;
    }

    /// Saves at the end of each epoch whose number, from 1, is a multiple of this; 0 for none.
    public Builder optEveryEpochs(long epochs) {
      MisuseException.requireRange("optEveryEpochs", epochs, 1, Long.MAX_VALUE);
      everyEpochs = epochs;
      return this;
    }

    /// Saves the first step that is made when this time has passed since the last save, or since
    /// this was built.
    public Builder optEvery(Duration time) {
      MisuseException.requireGiven("optEvery", time);
      MisuseException.requireRange("minutes of optEvery", time.toMinutes(), 0, Long.MAX_VALUE);
      interval = time;
      return this;
    }

    /// Asked where the dataset stands, when a batch has been taken from it. Behind the last batch
    /// of an epoch it must say that nothing is left of this one: if the evaluation fails then, the
    /// epoch does not count as completed.
    public Builder optDatasetState(Supplier<Optional<String>> state) {
      MisuseException.requireGiven("optDatasetState", state);
      datasetState = state;
      datasetEpochOver = () -> false;
      return this;
    }

    /// Saves where this dataset stands; [ResumableDataset#restore] goes on from there. An epoch of
    /// which all steps were made counts as completed, also if its evaluation fails.
    public Builder optDataset(ResumableDataset dataset) {
      MisuseException.requireGiven("optDataset", dataset);
      datasetState = () -> Optional.of(dataset.state());
      datasetEpochOver = dataset::isEpochOver;
      return this;
    }

    /// Counts steps and epochs on from where a training was restored; else from 0.
    public Builder optFrom(RestoredTraining restored) {
      MisuseException.requireGiven("optFrom", restored);
      step = restored.step();
      epoch = restored.epoch();
      return this;
    }

    /// For tests.
    Builder optClock(InstantSource chosen) {
      clock = chosen;
      return this;
    }

    /// @throws MisuseException if there is no saver, nothing says when to save, or a
    ///     number is negative
    public CheckpointListener build() {
      if (everySteps == 0 && everyEpochs == 0 && interval == null) {
        throw new MisuseException(
            "none of optEverySteps, optEveryEpochs and optEvery is given; the listener needs one"
                + " that says when to save");
      }
      return new CheckpointListener(this, MisuseException.requireGiven("setSaver", saver));
    }
  }
}
