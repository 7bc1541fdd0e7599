// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// A training refuses the checkpoint of another one.
@ExtendWith(NoLeaks.class)
class ForeignCheckpointTest {
  @TempDir(factory = InMemory.class)
  private Path folder;

  @BeforeEach
  void save() {
    try (Training saved = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = saver()) {
      saved.steps(0, 1);
      var _ = saver.save(1, saved.model, saved.trainer);
      var _ = saver.save(SaveRequest.builder().setStep(2).setModel(saved.model).build());
    }
  }

  static Stream<Arguments> otherModels() {
    return Stream.of(
        Arguments.of(
            Named.of("lacks some", new SequentialBlock().add(linear(10)).add(linear(3))),
            "02BatchNorm_"),
        Arguments.of(
            Named.of("has more", ((SequentialBlock) Training.perceptron()).add(linear(3))),
            "06Linear_"),
        Arguments.of(
            Named.of(
                "is larger",
                new SequentialBlock()
                    .add(linear(11))
                    .add(BatchNorm.builder().build())
                    .add(Activation.reluBlock())
                    .add(Activation.reluBlock())
                    .add(linear(3))),
            "01Linear_"));
  }

  @ParameterizedTest
  @MethodSource("otherModels")
  void ofAnotherModel(Block block, String name) {
    try (Training other = new Training(block, Optimizers.adam());
        CheckpointSaver saver = saver()) {
      other.steps(50, 51);
      PlainState before = PlainState.of(other.trainer);
      assertThatThrownBy(() -> saver.restore(1, other.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(name);
      assertThat(PlainState.of(other.trainer)).isEqualTo(before);
      assertThatThrownBy(() -> saver.restore(1, other.model, null))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(name);
      assertThat(PlainState.of(other.trainer)).isEqualTo(before);
    }
  }

  @Test
  void ofAnotherOptimizer() {
    Optimizer sgd =
        Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).optMomentum(0.9f).build();
    try (Training other = new Training(Training.perceptron(), sgd);
        CheckpointSaver saver = saver()) {
      other.steps(50, 51);
      PlainState before = PlainState.of(other.trainer);
      assertThatThrownBy(() -> saver.restore(1, other.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContainingAll("Adam", "Sgd");
      assertThat(PlainState.of(other.trainer)).isEqualTo(before);
    }
  }

  @Test
  void thatWasSavedWithoutATrainer() {
    try (Training other = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = saver()) {
      PlainState before = PlainState.of(other.trainer);
      assertThatThrownBy(() -> saver.restoreLatest(other.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContainingAll("gantry-step-2", "without a trainer");
      assertThat(PlainState.of(other.trainer)).isEqualTo(before);
    }
  }

  @Test
  void aTrainerOfAnotherModel() {
    try (Training one = new Training(Training.perceptron(), Optimizers.adam());
        Training other = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = saver()) {
      PlainState before = PlainState.of(other.trainer);
      assertThatThrownBy(() -> saver.restore(1, one.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("not of this model");
      assertThat(PlainState.of(other.trainer)).isEqualTo(before);
      assertThatThrownBy(() -> saver.save(3, one.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("not of this model");
      assertThat(saver.list()).hasSize(2);
    }
  }

  private static Linear linear(int units) {
    return Linear.builder().setUnits(units).build();
  }

  private CheckpointSaver saver() {
    return CheckpointSaver.builder().setPath(folder).build();
  }
}
