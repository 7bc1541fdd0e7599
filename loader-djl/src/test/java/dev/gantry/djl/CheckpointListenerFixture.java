// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A folder of checkpoints, and trainings that are continued from them.
@ExtendWith(NoLeaks.class)
abstract class CheckpointListenerFixture {
  private static @Nullable PlainState end;

  @TempDir(factory = InMemory.class)
  Path folder;

  static TrainingListener onEpoch(Consumer<Trainer> work) {
    return new TrainingListenerAdapter() {
      @Override
      public void onEpoch(Trainer trainer) {
        work.accept(trainer);
      }
    };
  }

  CheckpointSaver saver(SaveMode mode) {
    return CheckpointSaver.builder().setPath(folder).optMode(mode).build();
  }

  /// Trains all epochs.
  ///
  /// @return the steps that were saved
  List<Long> fit(
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

  /// Returns the state in which a training ends that is not interrupted. It is trained once, since
  /// its state is the same each time.
  static PlainState uninterrupted() throws IOException, TranslateException {
    PlainState known = end;
    if (known == null) {
      try (Training training = Fit.training()) {
        Fit.fit(training);
        known = PlainState.of(training.trainer);
      }
      end = known;
    }
    return known;
  }

  void assertAllGoOn() throws IOException, TranslateException {
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
}
