package dev.gantry.djl.internal;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.nn.Block;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// A training that goes on in new objects from what was read out of the old ones has, bit for bit,
/// the losses of one that was never interrupted.
class ResumeTest {
  private static final int INTERRUPTED = 6;
  private static final int END = 12;

  private static Optimizer adam() {
    return Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.01f)).build();
  }

  static Stream<Named<Supplier<Optimizer>>> optimizers() {
    return Stream.of(
        Named.of("adam", ResumeTest::adam),
        Named.of(
            "adam with warm up",
            () ->
                Optimizer.adam()
                    .optLearningRateTracker(
                        Tracker.warmUp()
                            .optWarmUpSteps(INTERRUPTED + 2)
                            .optWarmUpBeginValue(0.001f)
                            .setMainTracker(Tracker.fixed(0.02f))
                            .build())
                    .build()),
        Named.of("adam w", () -> Optimizer.adamW().optWeightDecays(0.1f).build()),
        Named.of("sgd", () -> Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build()),
        Named.of(
            "sgd with factors",
            () ->
                Optimizer.sgd()
                    .setLearningRateTracker(
                        Tracker.multiFactor()
                            .setBaseValue(0.3f)
                            .setSteps(new int[] {INTERRUPTED - 2, INTERRUPTED, INTERRUPTED + 3})
                            .optFactor(0.3f)
                            .build())
                    .build()),
        Named.of(
            "sgd with momentum",
            () ->
                Optimizer.sgd()
                    .setLearningRateTracker(Tracker.fixed(0.1f))
                    .optMomentum(0.9f)
                    .build()),
        Named.of(
            "sgd that begins late",
            () ->
                Optimizer.sgd()
                    .setLearningRateTracker(
                        Tracker.factor().setBaseValue(0.5f).setFactor(0.8f).build())
                    .optBeginNumUpdate(3)
                    .build()),
        Named.of(
            "nag",
            () ->
                Optimizer.nag()
                    .setLearningRateTracker(Tracker.fixed(0.1f))
                    .setMomentum(0.9f)
                    .build()),
        Named.of("rms prop", () -> Optimizer.rmsprop().optCentered(false).build()),
        Named.of("rms prop centered", () -> Optimizer.rmsprop().optCentered(true).build()),
        Named.of(
            "adagrad",
            () -> Optimizer.adagrad().optLearningRateTracker(Tracker.fixed(0.1f)).build()),
        Named.of("adadelta", () -> Optimizer.adadelta().optRho(0.9f).optEpsilon(1e-4f).build()));
  }

  @ParameterizedTest
  @MethodSource("optimizers")
  void everyOptimizerGoesOnWhereItWas(Supplier<Optimizer> optimizer) {
    assertGoesOn(Training::perceptron, optimizer);
  }

  @Test
  void aLayerThatIsThereTwice() {
    assertGoesOn(Training::tied, ResumeTest::adam);
  }

  @Test
  void intoATrainerThatHasMadeStepsOfItsOwn() {
    List<Integer> expected = uninterrupted(Training::perceptron, ResumeTest::adam);
    PlainState state = interrupted(Training::perceptron, ResumeTest::adam);
    try (Training other = new Training(Training.perceptron(), adam())) {
      other.steps(100, 103);
      state.restore(other.trainer);
      assertThat(other.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }

  @Test
  void gradientsThatWaitForAStepAreNoPartOfIt() {
    List<Integer> expected = uninterrupted(Training::perceptron, ResumeTest::adam);
    PlainState state = interrupted(Training::perceptron, ResumeTest::adam);
    try (Training other = new Training(Training.perceptron(), adam())) {
      other.backward(100);
      state.restore(other.trainer);
      assertThat(other.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }

  /// That the tests above would see it.
  @Test
  void withoutTheRandomNumbersItIsAnotherTraining() {
    List<Integer> expected = uninterrupted(Training::perceptron, ResumeTest::adam);
    PlainState state = interrupted(Training::perceptron, ResumeTest::adam);
    Training.seed(2);
    try (Training other = new Training(Training.perceptron(), adam())) {
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
