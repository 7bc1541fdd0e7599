// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDScope;
import ai.djl.nn.Block;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// A training that continues from a checkpoint has, bit for bit, the losses of a training that was
/// never interrupted.
@ExtendWith(NoLeaks.class)
class SaverResumeTest {
  static final int INTERRUPTED = Optimizers.TURN;
  static final int END = 12;

  @TempDir private Path folder;

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

  /// The training makes further steps before the first byte is written.
  @ParameterizedTest
  @MethodSource("optimizers")
  void asTheTrainingWasWhenItWasSavedThoughItWentOn(Supplier<Optimizer> optimizer) {
    CountDownLatch trained = new CountDownLatch(1);
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).at(Function.PWRITE, 1, new After(() -> await(trained)));
    List<Integer> expected;
    PlainState state;
    Training.seed(1);
    try (GantrySession session = Sessions.over(calls);
        CheckpointSaver saver =
            CheckpointSaver.builder()
                .setPath(folder)
                .optSession(session)
                .optMode(SaveMode.ASYNC)
                .build();
        Training training = new Training(Training.perceptron(), optimizer.get())) {
      training.steps(0, INTERRUPTED);
      state = PlainState.of(training.trainer);
      CompletableFuture<SaveOutcome> saved =
          saver.save(INTERRUPTED, training.model, training.trainer);
      expected = training.steps(INTERRUPTED, END);
      assertThat(saved).isNotDone();
      trained.countDown();
      assertThat(saved.join()).isInstanceOf(SaveOutcome.Saved.class);
    }
    assertResumes(Training::perceptron, optimizer, state, expected);
  }

  @Test
  void anotherProcessGoesOn() {
    List<Integer> expected = save(Training::perceptron, Optimizers::adam);
    assertThat(
            ChildJvm.run("256m", Map.of(), ResumeProgram.class, folder.toString()).requirePassed())
        .contains("step 6, losses " + expected);
  }

  @Test
  void intoATrainerThatHasMadeStepsOfItsOwn() {
    List<Integer> expected = save(Training::perceptron, Optimizers::adam);
    try (Training other = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      other.steps(100, 103);
      other.backward(104);
      saver.restore(INTERRUPTED, other.model, other.trainer);
      assertThat(other.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }

  /// A scope closes the arrays that were made in it.
  @Test
  void whatARestoreMakesOutlivesAScopeOfTheProgram() {
    List<Integer> expected = save(Training::perceptron, Optimizers::adam);
    try (Training fresh = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      try (NDScope scope = new NDScope()) {
        scope.suppressNotUsedWarning();
        saver.restore(INTERRUPTED, fresh.model, fresh.trainer);
      }
      assertThat(fresh.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }

  private void assertGoesOn(Supplier<Block> block, Supplier<Optimizer> optimizer) {
    Training.seed(1);
    PlainState state;
    try (Training training = new Training(block.get(), optimizer.get())) {
      training.steps(0, INTERRUPTED);
      state = PlainState.of(training.trainer);
    }
    assertResumes(block, optimizer, state, save(block, optimizer));
  }

  /// @return the losses after the saved step
  private List<Integer> save(Supplier<Block> block, Supplier<Optimizer> optimizer) {
    Training.seed(1);
    try (Training training = new Training(block.get(), optimizer.get());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      training.steps(0, INTERRUPTED);
      var _ = saver.save(INTERRUPTED, training.model, training.trainer);
      return training.steps(INTERRUPTED, END);
    }
  }

  private void assertResumes(
      Supplier<Block> block,
      Supplier<Optimizer> optimizer,
      PlainState state,
      List<Integer> expected) {
    assertThat(expected).doesNotHaveDuplicates();
    Training.seed(2);
    try (Training resumed = new Training(block.get(), optimizer.get());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      RestoredTraining restored = saver.restoreLatest(resumed.model, resumed.trainer).orElseThrow();
      assertThat(restored.step()).isEqualTo(INTERRUPTED);
      assertThat(PlainState.of(resumed.trainer)).isEqualTo(state);
      assertThat(resumed.steps(INTERRUPTED, END)).isEqualTo(expected);
    }
  }
}
