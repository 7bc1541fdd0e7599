// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.Block;
import ai.djl.nn.ParameterList;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.listener.TrainingListener;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// States of a training that log a warning, because no call fails.
@ExtendWith(NoLeaks.class)
class CheckpointWarningsTest {
  @TempDir(factory = InMemory.class)
  private Path folder;

  private CheckpointSaver.Builder saver() {
    return CheckpointSaver.builder().setPath(folder);
  }

  private static void fit(TrainingListener... listeners) {
    try (Training training = Fit.training(listeners)) {
      Fit.fit(training);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (TranslateException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void aSaveWithinAnEpochThatLacksTheDatasetsPosition() {
    try (CheckpointSaver saver = saver().build()) {
      assertThat(
              StandardError.during(
                  () -> fit(CheckpointListener.builder().setSaver(saver).optEverySteps(3).build())))
          .containsOnlyOnce("without the dataset's position");
      assertThat(
              StandardError.during(() ->
                  fit(CheckpointListener.builder().setSaver(saver).optEveryEpochs(1).build())))
          .doesNotContain("without the dataset's position");
    }
  }

  @Test
  void theBestOfCheckpointsThatAreSavedBySteps() {
    try (CheckpointSaver saver =
        saver().optKeepBest("validate_loss", 1, Retention.Goal.MINIMIZE).build()) {
      assertThat(
              StandardError.during(() ->
                  fit(
                      new EvaluatorTrainingListener(),
                      CheckpointListener.builder().setSaver(saver).optEverySteps(3).build())))
          .containsOnlyOnce("optKeepBest is \"validate_loss\", and checkpoints within an epoch");
    }
  }

  @Test
  void aMetricThatIsNan() {
    try (CheckpointSaver saver = saver().optKeepBest("loss", 1, Retention.Goal.MINIMIZE).build();
        Training training = training()) {
      SaveRequest request =
          SaveRequest.builder()
              .setStep(3)
              .setModel(training.model)
              .optMetric("loss", Double.NaN)
              .build();
      assertThat(
              StandardError.during(() -> {
                var _ = saver.save(request);
              }))
          .contains("optKeepBest is \"loss\", which is NaN at step 3");
    }
  }

  private static void save(CheckpointSaver saver, long step, Training training) {
    var _ = saver.save(step, training.model, training.trainer);
  }

  private static Training training() {
    return new Training(Training.perceptron(), Optimizers.adam());
  }

  /// A GAN, for example, has two models.
  @Test
  void aSecondModelIsRefused() {
    try (CheckpointSaver saver = saver().build();
        Training generator = training()) {
      save(saver, 1, generator);
      try (Training critic = training()) {
        for (long step : new long[] {1, 2}) {
          assertThatThrownBy(() -> save(saver, step, critic))
              .isInstanceOf(MisuseException.class)
              .hasMessageContaining("a saver for each model");
        }
      }
      save(saver, 2, generator);
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(1L, 2L);
      generator.trainer.close();
      generator.model.close();
      // A model may take the place of one that was closed.
      try (Training next = training()) {
        save(saver, 3, next);
      }
      assertThat(saver.list()).hasSize(3);
    }
  }

  @ParameterizedTest
  @ValueSource(floats = {Float.NaN, Float.POSITIVE_INFINITY})
  void theLastFiniteCheckpointStays(float value) {
    try (CheckpointSaver saver = saver().optKeepLast(1).build();
        Training training = training()) {
      save(saver, 1, training);
      save(saver, 2, training);
      spoil(training, value);
      assertThat(StandardError.during(() -> save(saver, 3, training)))
          .contains(
              "STEP 3 HAS VALUES THAT ARE NaN OR INFINITE, in '",
              "The last checkpoint without such values stays, too");
      save(saver, 4, training);
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(2L, 4L);
      assertThat(saver.list()).extracting(StoredCheckpoint::isFinite).containsExactly(true, false);
      assertThat(StandardError.during(() -> saver.restoreLatest(training.model, training.trainer)))
          .contains("step 4 is restored, which has values that are NaN or infinite");
      saver.restore(2, training.model, training.trainer);
      save(saver, 5, training);
      assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(5L);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void thatThereIsNoFiniteCheckpointIsSaid(boolean async) {
    try (CheckpointSaver saver = saver().optMode(async ? SaveMode.ASYNC : SaveMode.SYNC).build();
        Training training = training()) {
      spoil(training, Float.NaN);
      for (long step = 1; step <= 2; step++) {
        long now = step;
        assertThat(StandardError.during(() -> save(saver, now, training)))
            .contains("STEP " + step + " HAS VALUES", "There is no checkpoint without such values")
            .doesNotContain("stays, too");
        saver.await();
      }
    }
  }

  @Test
  void aFiniteCheckpointThatIsBeingWrittenCounts() {
    try (CheckpointSaver saver = saver().optMode(SaveMode.ASYNC).build();
        Training training = training()) {
      save(saver, 1, training);
      spoil(training, Float.NaN);
      assertThat(StandardError.during(() -> save(saver, 2, training)))
          .contains("STEP 2 HAS VALUES", "stays, too");
    }
  }

  private static void spoil(Training training, float value) {
    NDArray weight = training.model.getBlock().getParameters().valueAt(0).getArray();
    try (NDManager manager = weight.getManager().newSubManager()) {
      float[] values = weight.toFloatArray();
      values[values.length / 2] = value;
      manager.create(values, weight.getShape()).copyTo(weight);
    }
  }

  /// The values are finite although their sum is not.
  @Test
  void largeValuesAreFinite() {
    try (CheckpointSaver saver = saver().build();
        Training training = training()) {
      NDArray weight = training.model.getBlock().getParameters().valueAt(0).getArray();
      try (NDManager manager = weight.getManager().newSubManager()) {
        manager.full(weight.getShape(), Float.MAX_VALUE).copyTo(weight);
      }
      save(saver, 1, training);
      assertThat(saver.latest().orElseThrow().isFinite()).isTrue();
    }
  }

  /// Two machines continue from step 1.
  @Test
  void trainingsThatPart(@TempDir(factory = InMemory.class) Path other) {
    String remote = "memory://" + UUID.randomUUID() + "/run";
    try (Training training = training()) {
      try (CheckpointSaver first = saver().optRemote(remote).build()) {
        assertThat(
                StandardError.during(() -> {
                  save(first, 1, training);
                  save(first, 2, training);
                }))
            .doesNotContain("TWO HISTORIES");
      }
      try (CheckpointSaver second =
          CheckpointSaver.builder().setPath(other).optRemote(remote).build()) {
        second.restore(1, training.model, training.trainer);
        assertThat(
                StandardError.during(() -> {
                  save(second, 2, training);
                  save(second, 3, training);
                }))
            .containsOnlyOnce("TWO HISTORIES");
      }
      assertThat(StandardError.during(() -> saver().optRemote(remote).build().close()))
          .contains("TWO HISTORIES")
          .contains("step 2 (save 2)")
          .contains("step 3 (save 4)");
      // A training that continues from the latest checkpoint gets no warning.
      assertThat(
              StandardError.during(() -> {
                try (CheckpointSaver third =
                    CheckpointSaver.builder().setPath(other).optRemote(remote).build()) {
                  third.restoreLatest(training.model, training.trainer);
                  save(third, 4, training);
                }
              }))
          .doesNotContain("TWO HISTORIES");
    }
    assertThat(MemoryStore.names(remote.substring("memory://".length()))).isNotEmpty();
  }

  /// A large block takes long to return its parameters.
  @Test
  void aBatchDoesNotAskTheBlockForItsParameters() {
    int[] asked = new int[1];
    Block block =
        new SequentialBlock() {
          @Override
          public ParameterList getParameters() {
            asked[0]++;
            return super.getParameters();
          }
        }.add(Linear.builder().setUnits(3).build());
    try (CheckpointSaver saver = saver().build()) {
      CheckpointListener listener =
          CheckpointListener.builder().setSaver(saver).optEverySteps(1000).build();
      try (Training training = new Training(block, Optimizers.adam())) {
        listener.onTrainingBatch(training.trainer, null);
        int first = asked[0];
        for (int i = 0; i < 10; i++) {
          listener.onTrainingBatch(training.trainer, null);
        }
        assertThat(asked[0]).isEqualTo(first);
      }
    }
  }
}
