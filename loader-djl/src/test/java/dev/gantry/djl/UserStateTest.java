// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDList;
import ai.djl.training.EasyTrain;
import ai.djl.util.RandomUtils;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A training whose dataset draws its own random numbers.
@ExtendWith(NoLeaks.class)
class UserStateTest {
  private static final int EPOCHS = 2;
  private static final int STEPS = 8;

  /// The number of batches that got noise.
  private final AtomicLong drawn = new AtomicLong();

  @TempDir(factory = InMemory.class)
  private Path folder;

  private Path samples;

  @BeforeEach
  void write() {
    samples = ImageShards.write(folder.resolve("shards"), 16, 9);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aTrainingWithRandomNumbersOfTheUsersOwnGoesOnAfterAnyStep(boolean async) throws Exception {
    PlainState end;
    try (CheckpointSaver saver = noisy().optMode(async ? SaveMode.ASYNC : SaveMode.SYNC).build();
        ShardDataset dataset = dataset();
        Training training =
            Fit.training(
                CheckpointListener.builder()
                    .setSaver(saver)
                    .optEverySteps(1)
                    .optDataset(dataset)
                    .build())) {
      EasyTrain.fit(training.trainer, EPOCHS, dataset, null);
      end = PlainState.of(training.trainer);
    }
    for (int step = 1; step < STEPS; step++) {
      drawn.set(100);
      assertThat(resumed(noisy(), step)).as("from step %d", step).isEqualTo(end);
    }
    // Without the restored state the training must differ, or the test would show nothing.
    drawn.set(100);
    assertThat(StandardError.during(() -> assertThat(resumed(saver(), 3)).isNotEqualTo(end)))
        .contains("WARN", "gantry-step-3 has the state 'noise', which no optState names");
  }

  private PlainState resumed(CheckpointSaver.Builder builder, long step) {
    try (CheckpointSaver saver = builder.build();
        ShardDataset dataset = dataset();
        Training training = Fit.training()) {
      RestoredTraining restored = saver.restore(step, training.model, training.trainer);
      dataset.restore(restored.datasetState().orElseThrow());
      EasyTrain.fit(training.trainer, EPOCHS - (int) restored.epoch(), dataset, null);
      return PlainState.of(training.trainer);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void aStateThatWasNotSavedStaysAndTheLogSaysSo() {
    try (Training training = Fit.training()) {
      try (CheckpointSaver saver = saver().build()) {
        var _ = saver.save(1, training.model, training.trainer);
      }
      drawn.set(7);
      try (CheckpointSaver saver = noisy().build()) {
        assertThat(StandardError.during(() -> saver.restore(1, training.model, training.trainer)))
            .contains("WARN", "gantry-step-1 has no state 'noise', which optState names");
        assertThat(drawn).hasValue(7);
      }
    }
  }

  /// A function that restores may draw numbers, for example to set up its own generator.
  @Test
  void whatTheUsersFunctionDrawsIsNotMissedAfterARestore() {
    CheckpointSaver.Builder drawing =
        saver().optState("draws", () -> "", _ -> RandomUtils.nextFloat());
    try (CheckpointSaver saver = drawing.build();
        Training training = Fit.training()) {
      RandomUtils.RANDOM.setSeed(5);
      var _ = saver.save(1, training.model, training.trainer);
      float next = RandomUtils.nextFloat();
      saver.restore(1, training.model, training.trainer);
      assertThat(RandomUtils.nextFloat()).isEqualTo(next);
    }
  }

  @Test
  void aModelAloneNeedsNoStateOfTheUsersOwn() {
    try (CheckpointSaver saver = noisy().build();
        Training training = Fit.training()) {
      drawn.set(7);
      var _ = saver.save(1, training.model, training.trainer);
      drawn.set(8);
      saver.restore(1, training.model, null);
      assertThat(drawn).hasValue(8);
      saver.restore(1, training.model, training.trainer);
      assertThat(drawn).hasValue(7);
    }
  }

  @Test
  void saysWhatItNeeds() {
    assertThatThrownBy(() -> noisy().optState("noise", () -> "", _ -> {}))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optState is given twice for 'noise'");
    try (CheckpointSaver saver = saver().optState("none", () -> null, _ -> {}).build();
        Training training = Fit.training()) {
      assertThatThrownBy(() -> saver.save(1, training.model, training.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("optState 'none' must save a text (was null)");
      assertThat(saver.list()).isEmpty();
    }
  }

  private CheckpointSaver.Builder saver() {
    return CheckpointSaver.builder().setPath(folder.resolve("run"));
  }

  private CheckpointSaver.Builder noisy() {
    return saver().optState("noise", drawn::toString, text -> drawn.set(Long.parseLong(text)));
  }

  private ShardDataset dataset() {
    return EpochEndTest.shards(samples)
        .optTransform(images -> noise(EpochEndTest.inputs(images)))
        .build();
  }

  private NDList noise(NDList inputs) {
    Random random = new Random(drawn.getAndIncrement());
    return new NDList(inputs.singletonOrThrow().add(random.nextFloat()));
  }
}
