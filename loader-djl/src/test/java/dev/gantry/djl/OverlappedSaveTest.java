// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.Initializer;
import ai.djl.util.PairList;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.djl.internal.training.Fences;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.TrainerParts;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.djl.internal.training.UpdateFence;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The thread that takes the snapshot is held while the training continues; nevertheless the save
/// has the state of its step.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class OverlappedSaveTest {
  private final Training training = new Training(Training.perceptron(), Optimizers.adam());
  private final HeldThread copier = new HeldThread();

  @TempDir(factory = InMemory.class)
  private Path folder;

  @AfterEach
  void close() {
    training.close();
  }

  /// A thread that begins its work only after [#release].
  private static final class HeldThread extends ThreadPoolExecutor {
    private final CountDownLatch mayWork = new CountDownLatch(1);

    HeldThread() {
      super(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
    }

    void release() {
      mayWork.countDown();
    }

    @Override
    protected void beforeExecute(Thread thread, Runnable work) {
      try {
        mayWork.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private CheckpointSaver saver() {
    return CheckpointSaver.builder()
        .setPath(folder)
        .optMode(SaveMode.OVERLAPPED)
        .optCopier(() -> copier)
        .build();
  }

  private void assertRestores(CheckpointSaver saver, PlainState expected) {
    Training.seed(99);
    assertThat(saver.restoreLatest(training.model, training.trainer)).isPresent();
    assertThat(PlainState.of(training.trainer)).isEqualTo(expected);
  }

  /// Waits until the thread waits.
  private static void awaitWaiting(Thread thread) {
    while (thread.getState() != Thread.State.WAITING) {
      assertThat(thread.isAlive()).as("has not waited").isTrue();
      assertThat(Thread.currentThread().isInterrupted()).as("out of time").isFalse();
      Thread.onSpinWait();
    }
  }

  @Test
  void theNextUpdateWaitsAndNothingBeforeIt() throws Exception {
    try (CheckpointSaver saver = saver()) {
      training.steps(0, 3);
      PlainState saved = PlainState.of(training.trainer);
      CompletableFuture<SaveOutcome> save = saver.save(3, training.model, training.trainer);
      // The batch changes running means and random numbers.
      training.backward(3);
      FutureTask<Boolean> step =
          new FutureTask<>(() -> {
            training.trainer.step();
            return true;
          });
      awaitWaiting(Thread.ofPlatform().start(step));
      assertThat(save).isNotDone();
      assertThat(PlainState.of(training.trainer).arrays()).isEqualTo(saved.arrays());
      copier.release();
      assertThat(step.get()).isTrue();
      assertThat(PlainState.of(training.trainer).arrays()).isNotEqualTo(saved.arrays());
      assertThat(save.join()).isInstanceOf(SaveOutcome.Saved.class);
      training.steps(4, 6);
      assertRestores(saver, saved);
    }
  }

  /// This also shows that the test above would fail without the fence.
  @Test
  void aChangeThatDoesNotWaitFailsTheSave() {
    try (CheckpointSaver saver = saver()) {
      training.steps(0, 3);
      var _ = saver.save(3, training.model, training.trainer);
      Fences.remove(training.trainer);
      training.steps(3, 4);
      copier.release();
      assertThatThrownBy(saver::await)
          .isInstanceOf(MisuseException.class)
          .hasMessageContainingAll(
              "'01Linear_weight' was changed", "step 3", "awaitSnapshot()", "SaveMode.ASYNC");
      assertThat(saver.list()).isEmpty();
    }
  }

  /// DJL gives the tensor other memory then.
  @Test
  void aParameterThatTakesOtherMemoryFailsTheSave() {
    try (CheckpointSaver saver = saver()) {
      training.steps(0, 1);
      var _ = saver.save(1, training.model, training.trainer);
      NDArray weight = training.model.getBlock().getParameters().valueAt(0).getArray();
      weight.set(new float[(int) weight.size()]);
      copier.release();
      assertThatThrownBy(saver::await)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("'01Linear_weight' was changed");
    }
  }

  @Test
  void theSavesOfAListenerHaveTheirSnapshotsByDefault() {
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      CheckpointListener listener =
          CheckpointListener.builder().setSaver(saver).optEverySteps(1).build();
      training.backward(0);
      listener.onTrainingBatch(training.trainer, null);
      training.trainer.step();
      PlainState saved = PlainState.of(training.trainer);
      listener.onTrainingBatch(training.trainer, null);
      training.model.getBlock().getParameters().valueAt(0).getArray().muli(2);
      assertRestores(saver, saved);
      listener.onTrainingEnd(training.trainer);
    }
  }

  @Test
  void byDefaultSnapshotsTakeAtMostHalfOfTheAvailableMemory() {
    OptionalLong available = OptionalLong.of(100);
    SnapshotLimits given = new SnapshotLimits(1, 90);
    Optional<SaveMode> chosen = Optional.of(SaveMode.OVERLAPPED);
    assertThat(Saves.limits(Optional.empty(), SnapshotLimits.DEFAULT, available))
        .isEqualTo(new SnapshotLimits(0, 50));
    assertThat(Saves.limits(Optional.empty(), given, available)).isEqualTo(given);
    assertThat(Saves.limits(chosen, SnapshotLimits.DEFAULT, available))
        .isEqualTo(SnapshotLimits.DEFAULT);
    assertThat(Saves.limits(Optional.empty(), SnapshotLimits.DEFAULT, OptionalLong.empty()))
        .isEqualTo(SnapshotLimits.DEFAULT);
  }

  @Test
  void whoChangesParametersOtherwiseWaitsByHand() throws Exception {
    try (CheckpointSaver saver = saver()) {
      training.steps(0, 1);
      PlainState saved = PlainState.of(training.trainer);
      var _ = saver.save(1, training.model, training.trainer);
      FutureTask<Boolean> wait =
          new FutureTask<>(() -> {
            saver.awaitSnapshot();
            return true;
          });
      awaitWaiting(Thread.ofPlatform().start(wait));
      copier.release();
      assertThat(wait.get()).isTrue();
      training
          .model
          .getBlock()
          .getParameters()
          .values()
          .forEach(parameter -> parameter.getArray().muli(0));
      assertRestores(saver, saved);
    }
  }

  /// The parameters' memory is kept until it is copied.
  @Test
  void theTrainingMayCloseMeanwhile() {
    PlainState saved;
    try (CheckpointSaver saver = saver()) {
      try (Training other = new Training(Training.perceptron(), Optimizers.adam())) {
        other.steps(0, 2);
        saved = PlainState.of(other.trainer);
        var _ = saver.save(2, other.model, other.trainer);
      }
      copier.release();
      assertRestores(saver, saved);
    }
  }

  @Test
  void withoutATrainerNothingHoldsUpdatesSoTheSnapshotIsTaken() {
    try (CheckpointSaver saver = saver()) {
      var _ = saver.save(SaveRequest.builder().setStep(1).setModel(training.model).build());
      saver.awaitSnapshot();
      copier.release();
    }
  }

  /// A training saves thousands of times before its manager is closed.
  @Test
  void aSaveLeavesNoArrayInTheTrainersManager() {
    copier.release();
    try (CheckpointSaver saver = saver()) {
      training.steps(0, 1);
      int before = training.trainer.getManager().getManagedArrays().size();
      assertThat(saver.save(1, training.model, training.trainer).join())
          .isInstanceOf(SaveOutcome.Saved.class);
      assertThat(training.trainer.getManager().getManagedArrays()).hasSize(before);
    }
  }

  @Test
  void preparedMemoryIsThatOfAStepToCome() {
    copier.release();
    try (CheckpointSaver saver = saver()) {
      saver.prepare(training.model, training.trainer).join();
      training.steps(0, 1);
      assertThat(saver.save(1, training.model, training.trainer).join())
          .isInstanceOf(SaveOutcome.Saved.class);
    }
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      assertThat(saver.prepare(training.model, training.trainer)).isDone();
    }
  }

  /// The next save throws the failure; a step has no part in it.
  @Test
  void aSnapshotThatFailedLetsTheTrainingGoOn() {
    TrainerParts.of(training.trainer)
        .fence()
        .hold(CompletableFuture.failedFuture(new IllegalStateException("no snapshot")));
    assertThat(training.steps(0, 1)).hasSize(1);
  }

  /// Two savers of a training take their snapshots at once.
  @Test
  void anUpdateWaitsForEachSnapshot() throws Exception {
    UpdateFence fence = TrainerParts.of(training.trainer).fence();
    CompletableFuture<Void> second = new CompletableFuture<>();
    fence.hold(CompletableFuture.completedFuture(null));
    fence.hold(second);
    training.backward(0);
    FutureTask<Boolean> step =
        new FutureTask<>(() -> {
          training.trainer.step();
          return true;
        });
    PlainState before = PlainState.of(training.trainer);
    awaitWaiting(Thread.ofPlatform().start(step));
    assertThat(PlainState.of(training.trainer)).isEqualTo(before);
    second.complete(null);
    assertThat(step.get()).isTrue();
  }

  /// A training that catches the failures of its saves would fill its device with copies.
  @Test
  void aSaveWhoseStateCannotBeReadLeavesNoArrayInTheTrainersManager() {
    try (CheckpointSaver saver =
        CheckpointSaver.builder()
            .setPath(folder)
            .optMode(SaveMode.OVERLAPPED)
            .optState(
                "own",
                () -> {
                  throw new IllegalStateException("not now");
                },
                _ -> {})
            .build()) {
      training.steps(0, 1);
      int before = training.trainer.getManager().getManagedArrays().size();
      assertThatThrownBy(() -> saver.save(1, training.model, training.trainer))
          .hasMessage("not now");
      assertThat(training.trainer.getManager().getManagedArrays()).hasSize(before);
    }
  }

  /// Counts its batches in a parameter without a gradient, as a block with statistics of its own does.
  private static final class CountingBlock extends AbstractBlock {
    private final Parameter count =
        addParameter(
            Parameter.builder()
                .setName("count")
                .setType(Parameter.Type.OTHER)
                .optRequiresGrad(false)
                .optInitializer(Initializer.ZEROS)
                .optShape(new Shape(1))
                .build());

    @Override
    protected NDList forwardInternal(
        ParameterStore store,
        NDList inputs,
        boolean training,
        @Nullable PairList<String, Object> parameters) {
      store.getValue(count, inputs.head().getDevice(), training).addi(1);
      return inputs;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputs) {
      return inputs;
    }
  }

  @Test
  void whatABlockOfYourOwnChangesInForwardIsSavedAsItWas() {
    // The gradients of a last layer alone add up to about 0, and DJL refuses a sum of exactly 0.
    Block block =
        new SequentialBlock()
            .add(new CountingBlock())
            .add(Linear.builder().setUnits(4).build())
            .add(Activation.tanhBlock())
            .add(Linear.builder().setUnits(3).build());
    try (Training counting = new Training(block, Optimizers.adam());
        CheckpointSaver saver = saver()) {
      counting.steps(0, 2);
      var _ = saver.save(2, counting.model, counting.trainer);
      counting.backward(2);
      copier.release();
      assertThat(saver.restoreLatest(counting.model, counting.trainer)).isPresent();
      assertThat(block.getParameters().get("01CountingBlock_count").getArray().toFloatArray())
          .containsExactly(2);
    }
  }
}
