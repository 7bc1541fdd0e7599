// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.loss.Loss;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The requests that a saver accepts, the checkpoints that it keeps, and its errors after a save
/// has failed.
@ExtendWith(NoLeaks.class)
class CheckpointSaverTest {
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final GantrySession session = Sessions.over(calls);
  private final Training training = new Training(Training.perceptron(), Optimizers.adam());

  @TempDir(factory = InMemory.class)
  private Path folder;

  @AfterEach
  void close() {
    training.close();
    session.close();
  }

  @Test
  void whatWasSavedBesidesTensorsComesBack() {
    try (CheckpointSaver saver = builder().build()) {
      assertThat(saver.latest()).isEmpty();
      assertThat(saver.restoreLatest(training.model, training.trainer)).isEmpty();
      var _ =
          saver.save(
              SaveRequest.builder()
                  .setStep(70)
                  .setModel(training.model)
                  .optTrainer(training.trainer)
                  .optEpoch(3)
                  .optDatasetState("row 17")
                  .optMetric("loss", 0.25)
                  .optMetric("grade", Double.NaN)
                  .optMetadata("author", "me, \"myself\" & ñ")
                  .build());
      RestoredTraining restored =
          saver.restoreLatest(training.model, training.trainer).orElseThrow();
      assertThat(restored.checkpoint()).isEqualTo(saver.latest().orElseThrow());
      assertThat(restored.step()).isEqualTo(70);
      assertThat(restored.epoch()).isEqualTo(3);
      assertThat(restored.datasetState()).contains("row 17");
      assertThat(restored.metrics()).containsEntry("loss", 0.25).containsEntry("grade", Double.NaN);
      assertThat(restored.metadata()).containsExactly(Map.entry("author", "me, \"myself\" & ñ"));
    }
  }

  @Test
  void whatNobodySaidIsNotThere() {
    try (CheckpointSaver saver = builder().build()) {
      assertSaved(saver, 0);
      RestoredTraining restored = saver.restore(0, training.model, training.trainer);
      assertThat(restored.step()).isZero();
      assertThat(restored.epoch()).isZero();
      assertThat(restored.datasetState()).isEmpty();
      assertThat(restored.metrics()).isEmpty();
      assertThat(restored.metadata()).isEmpty();
    }
  }

  @Test
  void allStayUnlessSomethingIsSaid() {
    try (CheckpointSaver saver = builder().build()) {
      for (int step = 1; step <= 7; step++) {
        assertSaved(saver, step);
      }
      assertThat(steps(saver)).containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L);
    }
  }

  @Test
  void oneRuleIsEnoughForTheOthersToGo() {
    try (CheckpointSaver saver = builder().optKeepEvery(2).build()) {
      for (int step = 1; step <= 5; step++) {
        assertSaved(saver, step);
      }
      assertThat(steps(saver)).containsExactly(2L, 4L, 5L);
    }
  }

  @Test
  void thoseStayThatARuleWants() {
    try (CheckpointSaver saver =
        builder()
            .optKeepLast(2)
            .optKeepEvery(4)
            .optKeepBest("loss", 1, Retention.Goal.MINIMIZE)
            .build()) {
      double[] losses = {9, 8, 1, 7, 6, 5, 4, 3, 2, 8};
      for (int step = 1; step <= losses.length; step++) {
        var _ =
            saver.save(
                SaveRequest.builder()
                    .setStep(step)
                    .setModel(training.model)
                    .optMetric("loss", losses[step - 1])
                    .build());
      }
      assertThat(steps(saver)).containsExactly(3L, 4L, 8L, 9L, 10L);
      assertThat(folder).isDirectoryNotContaining("glob:**/gantry-step-7");
    }
  }

  @Test
  void theBestOfEqualsIsTheOneThatWasSavedFirst() {
    try (CheckpointSaver saver = keepingTheBest("loss")) {
      assertThat(saver.best()).isEmpty();
      double[] losses = {3, 2, Double.NaN, 2};
      for (int step = 1; step <= losses.length; step++) {
        saveWith(saver, step, "loss", losses[step - 1]);
      }
      assertSaved(saver, 5);
      assertThat(saver.best()).map(StoredCheckpoint::step).contains(2L);
      assertThat(saver.latest()).map(StoredCheckpoint::step).contains(5L);
      assertThat(steps(saver)).containsExactly(2L, 5L);
    }
    try (CheckpointSaver saver = builder().build()) {
      assertThatThrownBy(saver::best)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("optKeepBest must be set");
    }
  }

  @Test
  void aSaveWithoutTheMetricThatTheBestAreKeptByIsWarnedOfOnce() {
    try (CheckpointSaver saver = keepingTheBest("los")) {
      assertThat(StandardError.during(() -> saveWith(saver, 1, "loss", 3)))
          .contains("WARN", "optKeepBest is \"los\"", "it has loss");
      assertThat(StandardError.during(() -> saveWith(saver, 2, "loss", 2))).isEmpty();
    }
  }

  private CheckpointSaver keepingTheBest(String metric) {
    return builder().optKeepBest(metric, 1, Retention.Goal.MINIMIZE).build();
  }

  private void saveWith(CheckpointSaver saver, long step, String metric, double value) {
    var _ =
        saver.save(
            SaveRequest.builder()
                .setStep(step)
                .setModel(training.model)
                .optMetric(metric, value)
                .build());
  }

  @Test
  void smallShards() {
    training.steps(0, 1);
    PlainState saved = PlainState.of(training.trainer);
    try (CheckpointSaver saver = builder().optFileBytes(100).build()) {
      assertSaved(saver, 1);
      assertThat(folder.resolve("gantry-step-1")).isDirectoryContaining("glob:**/model-00002-of-*");
      training.steps(1, 3);
      saver.restore(1, training.model, training.trainer);
      assertThat(PlainState.of(training.trainer)).isEqualTo(saved);
    }
  }

  @Test
  void tellsHowFarAWriteIs() {
    AtomicLong written = new AtomicLong();
    try (CheckpointSaver saver = builder().optProgress((done, _) -> written.set(done)).build()) {
      assertSaved(saver, 1);
    }
    assertThat(written).hasPositiveValue();
  }

  @Test
  void oneSaverAtATimeHasAFolder() {
    try (CheckpointSaver saver = builder().optMode(SaveMode.ASYNC).build()) {
      assertThatThrownBy(builder()::build)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(folder.toString());
      assertSaved(saver, 1);
    }
    try (CheckpointSaver next = builder().build()) {
      assertThat(steps(next)).containsExactly(1L);
    }
  }

  @Test
  void saysWhatItNeeds() {
    assertThatThrownBy(() -> CheckpointSaver.builder().build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("setPath must be given (was null)");
    assertThatThrownBy(() -> builder().optFileBytes(0)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> builder().optKeepLast(-1).build()).isInstanceOf(MisuseException.class);
    SaveRequest.Builder request = SaveRequest.builder().setModel(training.model);
    assertThatThrownBy(request::build)
        .isInstanceOf(MisuseException.class)
        .hasMessageMatching("setStep must be .* \\(was -1\\)");
    assertThatThrownBy(() -> request.setStep(1).optEpoch(-2).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageMatching("optEpoch must be .* \\(was -2\\)");
    assertThatThrownBy(() -> SaveRequest.builder().setStep(1).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("setModel must be given (was null)");
    assertThatThrownBy(() -> request.optDatasetState("row 3").optDataset(new Rows()))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "optDatasetState (row 3) and optDataset (row 5) both choose the dataset's position;"
                + " call one of them");
    try (CheckpointSaver saver = builder().build()) {
      assertThatThrownBy(() -> saver.save(-1, training.model, training.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessage("step must be at least 0 (was -1)");
    }
  }

  /// A dataset at its fifth row.
  static final class Rows implements ResumableDataset {
    @Override
    public Iterable<Batch> getData(NDManager manager) {
      return List.of();
    }

    @Override
    public String state() {
      return "row 5";
    }

    @Override
    public void restore(String state) {}

    @Override
    public void close() {}
  }

  @Test
  void aParameterThatIsNotInitialised() {
    try (Model model = Model.newInstance("empty", "PyTorch");
        CheckpointSaver saver = builder().optMode(SaveMode.ASYNC).build()) {
      model.setBlock(new SequentialBlock().add(Linear.builder().setUnits(2).build()));
      assertThatThrownBy(() -> saver.save(SaveRequest.builder().setStep(1).setModel(model).build()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("'01Linear_weight' is not initialised");
      try (Trainer trainer = model.newTrainer(new DefaultTrainingConfig(Loss.l2Loss()))) {
        assertThatThrownBy(() -> saver.save(1, model, trainer))
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining("'01Linear_weight' is not initialised: initialise the trainer");
      }
      assertThat(saver.list()).isEmpty();
      // The saver can save further.
      assertSaved(saver, 2);
    }
  }

  @Test
  void aModelThatIsClosedIsNeitherSavedNorRestored() {
    try (Training training = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = builder().build()) {
      saver.save(1, training.model, training.trainer).join();
      training.model.close();
      String closed =
          "the array of parameter '01Linear_weight' is closed; its model or manager must stay open";
      assertThatThrownBy(() -> saver.save(2, training.model, training.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessage(closed);
      assertThatThrownBy(() -> saver.restoreLatest(training.model, null))
          .isInstanceOf(MisuseException.class)
          .hasMessage(closed);
      assertThat(saver.list()).hasSize(1);
    }
  }

  @Test
  void aModelWithoutABlockAndATrainerThatIsClosed() {
    try (Training other = new Training(Training.perceptron(), Optimizers.adam());
        Model empty = Model.newInstance("empty", "PyTorch");
        CheckpointSaver saver = builder().build()) {
      assertThatThrownBy(() -> saver.save(SaveRequest.builder().setStep(1).setModel(empty).build()))
          .isInstanceOf(MisuseException.class)
          .hasMessage("setBlock of the model must be given (was null)");
      assertSaved(saver, 1);
      assertThatThrownBy(() -> saver.restore(RestoreRequest.builder().setModel(empty).build()))
          .isInstanceOf(MisuseException.class)
          .hasMessage("setBlock of the model must be given (was null)");
      other.trainer.close();
      assertThatThrownBy(() -> saver.restoreLatest(other.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the trainer is closed: it takes no arrays");
    }
  }

  @Test
  void oneFolderHasTheCheckpointsOfOneModel() {
    try (Training other = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = builder().build()) {
      assertThatThrownBy(() -> saver.save(1, training.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the trainer is not of this model");
      assertSaved(saver, 1);
      assertThatThrownBy(() -> saver.save(2, other.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageStartingWith("step 2 is of another model than this saver has saved");
      assertThatThrownBy(() -> saver.restoreLatest(training.model, other.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the trainer is not of this model");
      assertThat(steps(saver)).containsExactly(1L);
    }
  }

  @Test
  void aSaveThatFailsThrows() {
    try (CheckpointSaver saver = builder().build()) {
      failNextWrite();
      assertThatThrownBy(() -> saver.save(1, training.model, training.trainer))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("EIO");
      assertThat(steps(saver)).isEmpty();
      assertSaved(saver, 2);
      assertThat(steps(saver)).containsExactly(2L);
    }
  }

  @Test
  void aSaveThatFailsBehindIsToldOnItsFutureAndAtTheNextCall() {
    try (CheckpointSaver saver = builder().optMode(SaveMode.ASYNC).build()) {
      List<ThrowingCallable> nextCalls =
          List.of(
              () -> saver.save(2, training.model, training.trainer),
              saver::await,
              () -> saver.restoreLatest(training.model, training.trainer),
              () -> saver.restore(1, training.model, training.trainer),
              () -> saver.restore(RestoreRequest.builder().setModel(training.model).build()),
              saver::awaitUploads);
      for (ThrowingCallable next : nextCalls) {
        CompletableFuture<SaveOutcome> saved = failingSave(saver);
        assertThatThrownBy(saved::join)
            .isInstanceOf(CompletionException.class)
            .cause()
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("EIO");
        assertThatThrownBy(next)
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("EIO")
            .hasMessageContaining("gantry-step-1");
        // The failure is thrown only once.
        saver.await();
      }
      assertThat(steps(saver)).isEmpty();
    }
  }

  /// EIO stands for a sector of the disk that can no longer be read.
  @Test
  void aReadThatFailsIsDamage() {
    try (CheckpointSaver saver = builder().optFallBack(true).build()) {
      assertSaved(saver, 1);
      assertSaved(saver, 2);
      failLastReadOfNextRestore(saver, Errno.EIO);
      assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
          .isEqualTo(1);
      // ENOMEM is no fault of the disk, so there is no fallback.
      failLastReadOfNextRestore(saver, Errno.ENOMEM);
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOMEM");
    }
    PlainState before = PlainState.of(training.trainer);
    try (CheckpointSaver saver = builder().build()) {
      failLastReadOfNextRestore(saver, Errno.EIO);
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("EIO")
          .hasMessageContaining("gantry-step-2");
      assertThat(PlainState.of(training.trainer)).isEqualTo(before);
    }
  }

  @Test
  void closingTellsOfASaveThatFailedAndFreesTheFolder() {
    CheckpointSaver saver = builder().optMode(SaveMode.ASYNC).build();
    var _ = failingSave(saver);
    assertThatThrownBy(saver::close)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("EIO");
    saver.close();
    try (CheckpointSaver next = builder().build()) {
      assertThat(steps(next)).isEmpty();
      assertSaved(next, 1);
    }
  }

  @Test
  void aSaverThatCannotBeMadeFreesTheFolder() {
    CheckpointSaver.Builder failing =
        builder()
            .optMode(SaveMode.ASYNC)
            .optCopier(() -> {
              throw new IllegalStateException("no thread");
            });
    assertThatThrownBy(failing::build).hasMessage("no thread");
    try (CheckpointSaver next = builder().build()) {
      assertSaved(next, 1);
    }
  }

  @Test
  void closingWaitsForWhatIsBeingSaved() {
    CompletableFuture<SaveOutcome> saved;
    try (CheckpointSaver saver = builder().optMode(SaveMode.ASYNC).build()) {
      saved = saver.save(1, training.model, training.trainer);
    }
    assertThat(saved).isCompletedWithValueMatching(SaveOutcome.Saved.class::isInstance);
  }

  @Test
  void afterClosingAllCallsAreRefused() {
    for (boolean async : new boolean[] {false, true}) {
      CheckpointSaver saver = builder().optMode(async ? SaveMode.ASYNC : SaveMode.SYNC).build();
      saver.close();
      List<ThrowingCallable> nextCalls =
          List.of(
              () -> saver.save(1, training.model, training.trainer),
              saver::await,
              saver::list,
              saver::latest,
              () -> saver.restoreLatest(training.model, training.trainer),
              () -> saver.restore(1, training.model, training.trainer),
              () -> saver.restore(RestoreRequest.builder().setModel(training.model).build()));
      for (ThrowingCallable next : nextCalls) {
        assertThatThrownBy(next).isInstanceOf(MisuseException.class).hasMessageContaining("closed");
      }
    }
  }

  @Test
  void skipsWhileAnotherIsBeingWritten() {
    CountDownLatch asked = new CountDownLatch(1);
    calls.at(
        Function.PWRITE,
        calls.count(Function.PWRITE) + 1,
        new After(() -> {
          try {
            asked.await();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
        }));
    try (CheckpointSaver saver =
        builder().optMode(SaveMode.ASYNC).optBusyPolicy(BusyPolicy.SKIP).build()) {
      CompletableFuture<SaveOutcome> first = saver.save(1, training.model, training.trainer);
      assertThat(saver.save(2, training.model, training.trainer))
          .isCompletedWithValue(new SaveOutcome.Skipped(2));
      asked.countDown();
      assertThat(first.join()).isInstanceOf(SaveOutcome.Saved.class);
    }
  }

  @Test
  void snapshotsNeedAsync() {
    CheckpointSaver.Builder builder = builder().optMode(SaveMode.SYNC).optSnapshots(0, 1);
    assertThatThrownBy(builder::build)
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "optSnapshots needs optMode(SaveMode.ASYNC) or OVERLAPPED: other saves take none");
  }

  @Test
  void withoutMemoryForASnapshotTheSaveIsWaitedFor() {
    try (CheckpointSaver saver = builder().optMode(SaveMode.ASYNC).optSnapshots(0, 1).build()) {
      CompletableFuture<SaveOutcome> saved = saver.save(1, training.model, training.trainer);
      assertThat(saved).isDone();
      assertThat(steps(saver)).containsExactly(1L);
    }
  }

  private CompletableFuture<SaveOutcome> failingSave(CheckpointSaver saver) {
    failNextWrite();
    return saver.save(1, training.model, training.trainer);
  }

  private void failNextWrite() {
    calls.at(Function.FSYNC, calls.count(Function.FSYNC) + 2, new Fails(Errno.EIO));
  }

  /// Lets the last read of the next restore fail, which reads a tensor. The reads before it are of
  /// manifests, an index and headers.
  private void failLastReadOfNextRestore(CheckpointSaver saver, Errno errno) {
    int before = calls.count(Function.PREAD);
    assertThat(saver.restoreLatest(training.model, training.trainer)).isPresent();
    int after = calls.count(Function.PREAD);
    calls.at(Function.PREAD, after + (after - before), new Fails(errno));
  }

  private void assertSaved(CheckpointSaver saver, long step) {
    assertThat(saver.save(step, training.model, training.trainer).join())
        .isInstanceOf(SaveOutcome.Saved.class);
  }

  private static List<Long> steps(CheckpointSaver saver) {
    return saver.list().stream().map(StoredCheckpoint::step).toList();
  }

  private CheckpointSaver.Builder builder() {
    return CheckpointSaver.builder().setPath(folder).optSession(session);
  }
}
