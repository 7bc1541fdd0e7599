// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
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
}
