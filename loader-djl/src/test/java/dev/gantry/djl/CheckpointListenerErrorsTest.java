// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.optimizer.Sgd;
import ai.djl.training.tracker.Tracker;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Iterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The failure of a save is thrown into the training, and a step in which the training fails is
/// not saved.
@ExtendWith(NoLeaks.class)
class CheckpointListenerErrorsTest {
  private static final Fails FULL = new Fails(Errno.ENOSPC);

  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final GantrySession session = Sessions.over(calls);

  @TempDir(factory = InMemory.class)
  private Path folder;

  @AfterEach
  void closeSession() {
    session.close();
  }

  @Test
  void aSaveThatFailsEndsTheTraining() {
    try (CheckpointSaver saver = saver(false);
        Training training = training(saver, 3)) {
      calls.from(Function.PWRITE, calls.count(Function.PWRITE) + 1, FULL);
      assertThatThrownBy(() -> Fit.fit(training))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOSPC")
          .hasMessageContaining("gantry-step-3");
      assertThat(saver.list()).isEmpty();
      // Closing the trainer does not repeat the save.
      int writes = calls.count(Function.PWRITE);
      training.trainer.close();
      assertThat(calls.count(Function.PWRITE)).isEqualTo(writes);
    }
  }

  @Test
  void aSaveThatFailsBehindTheTrainingEndsItAtTheNext() {
    try (CheckpointSaver saver = saver(true);
        Training training = training(saver, 3)) {
      calls.from(Function.PWRITE, calls.count(Function.PWRITE) + 1, FULL);
      assertThatThrownBy(() -> Fit.fit(training))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOSPC")
          .hasMessageContaining("gantry-step-3");
      assertThat(saver.list()).isEmpty();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aSaveThatFailsIsLoggedIfThatWasChosen(boolean async) {
    try (CheckpointSaver saver = saver(async)) {
      CheckpointListener listener =
          CheckpointListener.builder()
              .setSaver(saver)
              .optEverySteps(3)
              .optLogFailedSaves(true)
              .build();
      calls.at(Function.PWRITE, calls.count(Function.PWRITE) + 1, FULL);
      String log =
          StandardError.during(() -> {
            try (Training training = Fit.training(listener)) {
              Fit.fit(training);
            } catch (IOException | TranslateException e) {
              throw new IllegalStateException(e);
            }
          });
      assertThat(log)
          .containsOnlyOnce("A CHECKPOINT IS NOT SAVED, and the training goes on")
          .contains("ENOSPC")
          .contains("gantry-step-3");
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(6L, 9L, 12L);
    }
  }

  @Test
  void theLastSaveThatFailsIsThrownWhenTheTrainerCloses() throws IOException, TranslateException {
    try (CheckpointSaver saver = saver(true);
        Training training = training(saver, 12)) {
      calls.from(Function.PWRITE, calls.count(Function.PWRITE) + 1, FULL);
      Fit.fit(training);
      assertThatThrownBy(training.trainer::close)
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOSPC");
      assertThat(saver.list()).isEmpty();
    }
  }

  /// Another listener fails after the batch and before its step.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aStepThatWasNotMadeIsNotSaved(boolean before) {
    TrainingListener failing =
        new TrainingListenerAdapter() {
          private int batches;

          @Override
          public void onTrainingBatch(Trainer trainer, BatchData batchData) {
            batches++;
            if (batches == 3) {
              throw new IllegalArgumentException("on purpose");
            }
          }
        };
    try (CheckpointSaver saver = saver(false)) {
      CheckpointListener listener =
          CheckpointListener.builder().setSaver(saver).optEverySteps(1).build();
      int held;
      try (Training training =
          before ? Fit.training(failing, listener) : Fit.training(listener, failing)) {
        assertThatThrownBy(() -> Fit.fit(training)).hasMessage("on purpose");
        held = training.trainer.getManager().getManagedArrays().size();
        listener.onTrainingEnd(training.trainer);
        assertThat(training.trainer.getManager().getManagedArrays()).hasSize(held - 2);
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(1L, 2L);
    }
  }

  @Test
  void aStepThatWasMadeIsSavedThoughTheNextBatchFails() throws IOException, TranslateException {
    PlainState afterStep;
    try (CheckpointSaver saver = saver(false)) {
      try (Training training = training(saver, 2)) {
        Trainer trainer = training.trainer;
        Iterator<Batch> batches = trainer.iterateDataset(Fit.samples(trainer)).iterator();
        for (int step = 0; step < 2; step++) {
          try (Batch batch = batches.next()) {
            EasyTrain.trainBatch(trainer, batch);
            trainer.step();
          }
        }
        afterStep = PlainState.of(trainer);
        // The next batch has come as far as its forward pass.
        training.backward(5);
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(2L);
      try (Training training = Fit.training()) {
        saver.restore(2, training.model, training.trainer);
        assertThat(PlainState.of(training.trainer)).isEqualTo(afterStep);
      }
    }
  }

  @Test
  void aStepThatFailedHalfWayIsNotSaved() {
    FailingSgd optimizer = new FailingSgd();
    try (CheckpointSaver saver = saver(false)) {
      try (Training training =
          new Training(
              Training.perceptron(),
              optimizer,
              CheckpointListener.builder().setSaver(saver).optEverySteps(1).build())) {
        assertThatThrownBy(() -> Fit.fit(training)).hasMessage("on purpose");
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(1L, 2L);
    }
  }

  @Test
  void anOptimizerThatCountsNoStepsIsRefused() {
    try (CheckpointSaver saver = saver(false);
        Training training =
            new Training(
                Training.perceptron(),
                Optimizer.adadelta().build(),
                CheckpointListener.builder().setSaver(saver).optEverySteps(1).build())) {
      assertThatThrownBy(() -> Fit.fit(training))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("Adadelta");
    }
  }

  private static Training training(CheckpointSaver saver, int everySteps) {
    return Fit.training(
        CheckpointListener.builder().setSaver(saver).optEverySteps(everySteps).build());
  }

  private CheckpointSaver saver(boolean async) {
    return CheckpointSaver.builder()
        .setPath(folder)
        .optSession(session)
        .optMode(async ? SaveMode.ASYNC : SaveMode.SYNC)
        .build();
  }

  /// An optimizer that fails during the updates of its third step.
  private static final class FailingSgd extends Sgd {
    private static final int PARAMETERS = 6;

    private transient int updates;

    FailingSgd() {
      super(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)));
    }

    @Override
    public void update(String parameterId, NDArray weight, NDArray gradient) {
      updates++;
      if (updates > 2 * PARAMETERS + 3) {
        throw new IllegalArgumentException("on purpose");
      }
      super.update(parameterId, weight, gradient);
    }
  }
}
