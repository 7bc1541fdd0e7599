// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Trainings of 12 steps that save every fifth step.
@ExtendWith(NoLeaks.class)
class TrainingEndTest {
  @TempDir(factory = InMemory.class)
  private Path folder;

  private CheckpointSaver.Builder saver() {
    return CheckpointSaver.builder().setPath(folder);
  }

  private static CheckpointListener every(int steps, CheckpointSaver saver) {
    return CheckpointListener.builder().setSaver(saver).optEverySteps(steps).build();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void itsLastStepIsSaved(boolean async) throws IOException, TranslateException {
    PlainState end;
    try (CheckpointSaver saver =
        saver()
            .optMode(async ? SaveMode.OVERLAPPED : SaveMode.SYNC)
            .optBusyPolicy(async ? BusyPolicy.SKIP : BusyPolicy.WAIT)
            .build()) {
      try (Training training = Fit.training(every(5, saver))) {
        Fit.fit(training);
        end = PlainState.of(training.trainer);
      }
      assertThat(saver.latest().orElseThrow().step()).isEqualTo(12);
    }
    try (CheckpointSaver saver = saver().build();
        Training training = Fit.training()) {
      RestoredTraining restored =
          saver.restoreLatest(training.model, training.trainer).orElseThrow();
      assertThat(restored.epoch()).isEqualTo(3);
      assertThat(PlainState.of(training.trainer)).isEqualTo(end);
    }
  }

  /// The first save is being written until the last epoch has ended, so the saver skips all others.
  @ParameterizedTest
  @CsvSource({"ASYNC,0", "ASYNC,1", "ASYNC,4", "OVERLAPPED,0", "OVERLAPPED,1", "OVERLAPPED,4"})
  void itsLastStepIsSavedThoughItsSaveWasSkipped(SaveMode mode, int everySteps)
      throws IOException, TranslateException {
    PlainState end;
    try (HeldSave held = new HeldSave();
        CheckpointSaver saver = held.saver(saver().optMode(mode))) {
      CheckpointListener.Builder listener = CheckpointListener.builder().setSaver(saver);
      listener = everySteps == 0 ? listener.optEveryEpochs(1) : listener.optEverySteps(everySteps);
      try (Training training = Fit.training(listener.build())) {
        Fit.fit(training);
        end = PlainState.of(training.trainer);
        held.goOn();
      }
      assertThat(saver.latest().orElseThrow().step()).isEqualTo(12);
    }
    try (CheckpointSaver saver = saver().build();
        Training training = Fit.training()) {
      RestoredTraining restored =
          saver.restoreLatest(training.model, training.trainer).orElseThrow();
      assertThat(restored.epoch()).isEqualTo(3);
      assertThat(PlainState.of(training.trainer)).isEqualTo(end);
    }
  }

  /// The loop does not call [CheckpointListener#onEpoch].
  @Test
  void aDueStepIsSavedThoughAnotherSaveIsBeingWrittenWhenTheTrainerCloses()
      throws IOException, TranslateException {
    try (HeldSave held = new HeldSave();
        CheckpointSaver saver = held.saver(saver().optMode(SaveMode.ASYNC))) {
      try (Training training = Fit.training(every(1, saver))) {
        Fit.goOn(training, 9);
        held.goOn();
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(1L, 3L);
    }
  }

  @Test
  void aSaverThatIsClosedBeforeTheTrainerSaysSo() throws IOException, TranslateException {
    CheckpointSaver saver = saver().build();
    Training training = Fit.training(every(5, saver));
    Fit.fit(training);
    saver.close();
    assertThatThrownBy(training::close)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("saver is closed; close it after the trainer");
    training.model.close();
  }

  @Test
  void whatWasRestoredIntoItAfterwardsIsNotSavedAsItsEnd() throws IOException, TranslateException {
    try (CheckpointSaver saver = saver().build()) {
      try (Training training = Fit.training(every(5, saver))) {
        Fit.fit(training);
        saver.restore(5, training.model, null);
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(5L, 10L);
    }
  }

  /// Its saver has restored before the training, which changes nothing after the training's epochs.
  @Test
  void theLastStepOfATrainingThatWasRestoredIsSaved() throws IOException, TranslateException {
    try (CheckpointSaver saver = saver().build()) {
      try (Training training = Fit.training(every(5, saver))) {
        Fit.fit(training);
      }
      try (Training training = Fit.training(every(5, saver))) {
        saver.restore(10, training.model, training.trainer);
        Fit.fit(training, 1);
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(5L, 10L, 12L, 4L);
    }
  }

  /// The copy from the end of the epoch does not fit the parameters any more.
  @Test
  void anEpochAfterWhichAStepWasMadeIsNoEnd() throws IOException, TranslateException {
    try (CheckpointSaver saver = saver().build()) {
      try (Training training = Fit.training(every(5, saver))) {
        Fit.fit(training, 1);
        training.steps(5, 6);
      }
      assertThat(saver.list()).isEmpty();
    }
  }

  @Test
  void theEpochBeforeAFailureIsSavedAsItWas() throws IOException, TranslateException {
    PlainState afterFirst;
    try (Training training = Fit.training()) {
      Fit.fit(training, 1);
      afterFirst = PlainState.of(training.trainer);
    }
    try (CheckpointSaver saver = saver().build()) {
      try (Training training = Fit.training(every(5, saver))) {
        Fit.fit(training, 1);
        // A batch of the next epoch comes as far as its forward pass.
        training.backward(5);
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(4L);
      try (Training training = Fit.training()) {
        saver.restore(4, training.model, training.trainer);
        assertThat(PlainState.of(training.trainer)).isEqualTo(afterFirst);
      }
    }
  }

  @Test
  void aFailureWithinAnEpochIsNoEnd() {
    TrainingListenerAdapter failing =
        new TrainingListenerAdapter() {
          private int batches;

          @Override
          public void onTrainingBatch(Trainer trainer, BatchData batchData) {
            batches++;
            if (batches == 7) {
              throw new IllegalArgumentException("on purpose");
            }
          }
        };
    try (CheckpointSaver saver = saver().build()) {
      try (Training training = Fit.training(every(5, saver), failing)) {
        assertThatThrownBy(() -> Fit.fit(training)).hasMessage("on purpose");
      }
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(5L);
    }
  }

  /// Makes a saver whose first save waits before its first write.
  private static final class HeldSave implements AutoCloseable {
    private final CountDownLatch goesOn = new CountDownLatch(1);
    private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    private final GantrySession session = Sessions.over(calls);

    CheckpointSaver saver(CheckpointSaver.Builder builder) {
      CheckpointSaver saver = builder.optSession(session).optBusyPolicy(BusyPolicy.SKIP).build();
      calls.at(
          Function.PWRITE,
          calls.count(Function.PWRITE) + 1,
          new After(() -> {
            try {
              assertThat(goesOn.await(1, TimeUnit.MINUTES)).isTrue();
            } catch (InterruptedException e) {
              throw new IllegalStateException(e);
            }
          }));
      return saver;
    }

    void goOn() {
      goesOn.countDown();
    }

    @Override
    public void close() {
      session.close();
    }
  }
}
