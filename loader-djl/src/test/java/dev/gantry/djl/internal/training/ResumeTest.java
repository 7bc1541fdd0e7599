// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.nn.Block;
import ai.djl.training.optimizer.Optimizer;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// A training that continues in new objects from the state of old ones has, bit for bit, the
/// losses of a training that was never interrupted.
class ResumeTest {
  private static final int INTERRUPTED = Optimizers.TURN;
  private static final int END = 12;

  static Stream<Named<Supplier<Optimizer>>> optimizers() {
    return Optimizers.all();
  }

  @ParameterizedTest
  @MethodSource("optimizers")
  void everyOptimizerGoesOnWhereItWas(Supplier<Optimizer> optimizer) {
    assertGoesOn(Training::perceptron, optimizer);
  }

  @Test
  void aLayerThatIsThereTwice() {
    assertGoesOn(Training::tied, Optimizers::adam);
  }

  @Test
  void intoATrainerThatHasMadeStepsOfItsOwn() {
    List<Integer> expected = uninterrupted(Training::perceptron, Optimizers::adam);
    PlainState state = interrupted(Training::perceptron, Optimizers::adam);
    try (Training other = new Training(Training.perceptron(), Optimizers.adam())) {
      other.steps(100, 103);
      state.restore(other.trainer);
      assertThat(other.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }

  @Test
  void gradientsThatWaitForAStepAreNoPartOfIt() {
    List<Integer> expected = uninterrupted(Training::perceptron, Optimizers::adam);
    PlainState state = interrupted(Training::perceptron, Optimizers::adam);
    try (Training other = new Training(Training.perceptron(), Optimizers.adam())) {
      other.backward(100);
      state.restore(other.trainer);
      assertThat(other.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }

  /// Without the random numbers the training differs, so the tests above would notice if these
  /// were missing.
  @Test
  void withoutTheRandomNumbersItIsAnotherTraining() {
    List<Integer> expected = uninterrupted(Training::perceptron, Optimizers::adam);
    PlainState state = interrupted(Training::perceptron, Optimizers::adam);
    Training.seed(2);
    try (Training other = new Training(Training.perceptron(), Optimizers.adam())) {
      state.restoreValues(other.trainer);
      assertThat(other.steps(INTERRUPTED, END)).isNotEqualTo(expected);
    }
  }

  private static void assertGoesOn(Supplier<Block> block, Supplier<Optimizer> optimizer) {
    List<Integer> expected = uninterrupted(block, optimizer);
    PlainState state = interrupted(block, optimizer);
    Training.seed(2);
    try (Training resumed = new Training(block.get(), optimizer.get())) {
      state.restore(resumed.trainer);
      assertThat(PlainState.of(resumed.trainer)).isEqualTo(state);
      assertThat(resumed.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }

  private static List<Integer> uninterrupted(Supplier<Block> block, Supplier<Optimizer> optimizer) {
    Training.seed(1);
    try (Training training = new Training(block.get(), optimizer.get())) {
      List<Integer> losses = training.steps(0, END);
      assertThat(losses).doesNotHaveDuplicates();
      return losses.subList(INTERRUPTED, END);
    }
  }

  private static PlainState interrupted(Supplier<Block> block, Supplier<Optimizer> optimizer) {
    Training.seed(1);
    try (Training training = new Training(block.get(), optimizer.get())) {
      training.steps(0, INTERRUPTED);
      return PlainState.of(training.trainer);
    }
  }
}
