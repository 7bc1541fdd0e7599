// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SequencedMap;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Which calls wait for the saver. A gate holds the saver, so a call that returns has not waited
/// for it; for a call that waits, the test checks the state of its thread.
class SaveQueueTest extends SaveQueueFixture {
  @Test
  void oneWaitsForTheOther() throws Exception {
    try (SaveQueue queue = queue(BusyPolicy.WAIT)) {
      CompletableFuture<SaveOutcome> first = queue.submit(TestCheckpoints.unsaved(1));
      gate.awaitSaver();
      Call<Submitted> second =
          Call.start(() -> new Submitted(queue.submit(TestCheckpoints.unsaved(2))));
      second.awaitWaiting();
      assertThat(first).isNotDone();
      gate.letPass(2);
      assertThat(savedStep(second.result().get().save())).isEqualTo(2);
      assertThat(savedStep(first)).isEqualTo(1);
    }
    assertThat(wholeSteps()).containsExactly(1L, 2L);
  }

  @Test
  void oneIsSkippedWhileTheOtherIsWritten() {
    try (SaveQueue queue = queue(BusyPolicy.SKIP)) {
      CompletableFuture<SaveOutcome> first = queue.submit(TestCheckpoints.unsaved(1));
      gate.awaitSaver();
      assertThat(queue.submit(TestCheckpoints.unsaved(2)))
          .isCompletedWithValue(new SaveOutcome.Skipped(2));
      gate.letPass(2);
      assertThat(savedStep(first)).isEqualTo(1);
      assertThat(savedStep(queue.submit(TestCheckpoints.unsaved(3)))).isEqualTo(3);
    }
    assertThat(wholeSteps()).containsExactly(1L, 3L);
  }

  @Test
  void oneIsQueuedAndTheThirdWaits() throws Exception {
    try (SaveQueue queue = queue(BusyPolicy.QUEUE)) {
      CompletableFuture<SaveOutcome> first = queue.submit(TestCheckpoints.unsaved(1));
      gate.awaitSaver();
      CompletableFuture<SaveOutcome> second = queue.submit(TestCheckpoints.unsaved(2));
      Call<Submitted> third =
          Call.start(() -> new Submitted(queue.submit(TestCheckpoints.unsaved(3))));
      third.awaitWaiting();
      assertThat(first).isNotDone();
      assertThat(second).isNotDone();
      gate.letPass(3);
      assertThat(savedStep(third.result().get().save())).isEqualTo(3);
    }
    assertThat(wholeSteps()).containsExactly(1L, 2L, 3L);
  }

  @Test
  void whoGivesUpAFutureGivesUpNoSave() throws Exception {
    try (SaveQueue queue = queue(BusyPolicy.QUEUE)) {
      var _ = queue.submit(TestCheckpoints.unsaved(1));
      gate.awaitSaver();
      assertThat(queue.submit(TestCheckpoints.unsaved(2)).cancel(true)).isTrue();
      gate.letPass(3);
      queue.await();
      assertThat(savedStep(queue.submit(TestCheckpoints.unsaved(3)))).isEqualTo(3);
    }
    assertThat(wholeSteps()).containsExactly(1L, 2L, 3L);
  }

  @Test
  void oneStepIsQueuedTwice() {
    try (SaveQueue queue = queue(BusyPolicy.QUEUE)) {
      var _ = queue.submit(new Name(1, 0).unsaved());
      var _ = queue.submit(new Name(1, 1).unsaved());
      gate.letPass(2);
      queue.await();
    }
    assertThat(TestCheckpoints.requireAllWhole(root, "")).containsExactly(new Name(1, 1));
  }

  @ParameterizedTest
  @EnumSource(names = {"WAIT", "QUEUE"})
  void aSnapshotKeepsWhatTheTensorsWere(BusyPolicy policy) {
    SequencedMap<String, SequencedMap<String, byte[]>> tensors = new Name(1, 0).tensors();
    try (SaveQueue queue = queue(policy)) {
      var _ = queue.submit(TestCheckpoints.unsaved(1, 0, tensors));
      tensors
          .values()
          .forEach(group -> group.values().forEach(each -> Arrays.fill(each, (byte) 9)));
      gate.letPass(1);
    }
    assertThat(wholeSteps()).containsExactly(1L);
  }

  @Test
  void withoutMemoryForASnapshotTheSaveIsWaitedFor() throws Exception {
    try (SaveQueue queue = queue(BusyPolicy.WAIT, new SnapshotLimits(0, 0))) {
      Call<Submitted> call =
          Call.start(() -> new Submitted(queue.submit(TestCheckpoints.unsaved(1))));
      gate.awaitSaver();
      call.awaitWaiting();
      gate.letPass(1);
      assertThat(call.result().get().save()).isDone();
    }
    assertThat(wholeSteps()).containsExactly(1L);
  }

  @ParameterizedTest
  @EnumSource(names = {"WAIT", "QUEUE"})
  void aFailureIsToldTwiceAndItsMemoryIsFree(BusyPolicy policy) {
    gate.letPass(1);
    faulty.at(Function.FALLOCATE, 1, new Fails(Errno.ENOSPC));
    try (SaveQueue queue = queue(policy, ONE)) {
      CompletableFuture<SaveOutcome> failed = queue.submit(TestCheckpoints.unsaved(1));
      Throwable onTheFuture = catchThrowable(failed::join).getCause();
      assertThat(onTheFuture).isInstanceOf(TransferException.class).hasMessageContaining("ENOSPC");
      assertThat(catchThrowable(() -> queue.submit(TestCheckpoints.unsaved(2))))
          .isSameAs(onTheFuture);
      // This call would wait for the gate if there were no memory for another snapshot.
      CompletableFuture<SaveOutcome> next = queue.submit(TestCheckpoints.unsaved(3));
      assertThat(next).isNotDone();
      gate.letPass(1);
      queue.await();
    }
    assertThat(wholeSteps()).containsExactly(3L);
    TestCheckpoints.requireNoLeftovers(root, "");
  }

  @Test
  void ofTwoFailuresTheFirstIsTold() {
    faulty.from(Function.FALLOCATE, 1, new Fails(Errno.ENOSPC));
    SaveQueue queue = queue(BusyPolicy.QUEUE);
    CompletableFuture<SaveOutcome> first = queue.submit(TestCheckpoints.unsaved(1));
    CompletableFuture<SaveOutcome> second = queue.submit(TestCheckpoints.unsaved(2));
    gate.letPass(2);
    assertThat(catchThrowable(second::join)).isNotNull();
    Throwable told = catchThrowable(queue::close);
    assertThat(told).isSameAs(catchThrowable(first::join).getCause());
  }

  /// The waiting call throws the failure of the save for which it waited.
  @Test
  void aFailureIsToldToWhoWaits() throws Exception {
    faulty.at(Function.FSYNC, faulty.count(Function.FSYNC) + 2, new Fails(Errno.EIO));
    try (SaveQueue queue = queue(BusyPolicy.WAIT)) {
      CompletableFuture<SaveOutcome> failed = queue.submit(TestCheckpoints.unsaved(1));
      gate.awaitSaver();
      Call<Throwable> second =
          Call.start(() -> catchThrowable(() -> queue.submit(TestCheckpoints.unsaved(2))));
      second.awaitWaiting();
      gate.letPass(1);
      assertThat(second.result().get())
          .isInstanceOf(TransferException.class)
          .isSameAs(catchThrowable(failed::join).getCause());
    }
    assertThat(wholeSteps()).isEmpty();
    TestCheckpoints.requireNoLeftovers(root, "");
  }

  @Test
  void aFailureIsToldByCloseAtTheLatest() {
    faulty.at(Function.RENAME, 1, new Fails(Errno.EIO));
    gate.letPass(1);
    SaveQueue queue = queue(BusyPolicy.WAIT);
    CompletableFuture<SaveOutcome> failed = queue.submit(TestCheckpoints.unsaved(1));
    Throwable told = catchThrowable(queue::close);
    assertThat(told).isInstanceOf(TransferException.class).hasMessageContaining("rename");
    assertThat(catchThrowable(failed::join)).cause().isSameAs(told);
    queue.close();
  }

  @Test
  void closeWaitsAlsoWhenInterrupted() throws Exception {
    SaveQueue queue = queue(BusyPolicy.QUEUE);
    var _ = queue.submit(TestCheckpoints.unsaved(1));
    var _ = queue.submit(TestCheckpoints.unsaved(2));
    gate.awaitSaver();
    Call<Boolean> close =
        Call.start(() -> {
          Thread.currentThread().interrupt();
          queue.close();
          return Thread.interrupted();
        });
    close.awaitWaiting();
    gate.letPass(2);
    assertThat(close.result().get()).as("still interrupted").isTrue();
    assertThat(wholeSteps()).containsExactly(1L, 2L);
  }

  @Test
  void afterCloseNothingIsTaken() {
    SaveQueue queue = queue(BusyPolicy.WAIT);
    queue.close();
    assertThatThrownBy(() -> queue.submit(TestCheckpoints.unsaved(1)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("closed");
    queue.await();
    queue.close();
    assertThat(wholeSteps()).isEmpty();
  }

  @Test
  void whoWaitsWhileItIsClosedIsRefused() throws Exception {
    SaveQueue queue = queue(BusyPolicy.WAIT);
    var _ = queue.submit(TestCheckpoints.unsaved(1));
    gate.awaitSaver();
    Call<Throwable> second =
        Call.start(() -> catchThrowable(() -> queue.submit(TestCheckpoints.unsaved(2))));
    second.awaitWaiting();
    Call<Boolean> close =
        Call.start(() -> {
          queue.close();
          return true;
        });
    close.awaitWaiting();
    gate.letPass(1);
    assertThat(close.result().get()).isTrue();
    assertThat(second.result().get()).isInstanceOf(MisuseException.class);
    assertThat(wholeSteps()).containsExactly(1L);
  }

  @Test
  void anInterruptionEndsTheWaitAndNothingElse() throws Exception {
    CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
    try (SaveQueue queue = queue(BusyPolicy.WAIT)) {
      var _ = queue.submit(TestCheckpoints.unsaved(1));
      gate.awaitSaver();
      Call<Throwable> second =
          Call.start(() -> {
            Throwable thrown = catchThrowable(() -> queue.submit(TestCheckpoints.unsaved(2)));
            interrupted.complete(Thread.interrupted());
            return thrown;
          });
      second.awaitWaiting();
      second.thread().interrupt();
      Throwable told = second.result().get();
      assertThat(told).isInstanceOf(TransferException.class);
      assertThat(told)
          .hasMessage("save failed: the checkpoint of step 2, on an interrupted thread: cancelled");
      gate.letPass(2);
      assertThat(savedStep(queue.submit(TestCheckpoints.unsaved(3)))).isEqualTo(3);
    }
    assertThat(interrupted.get()).as("the interruption stays noted").isTrue();
    assertThat(wholeSteps()).containsExactly(1L, 3L);
  }

  @Test
  void withinReadingNothingIsSaved() {
    try (SaveQueue queue = queue(BusyPolicy.WAIT)) {
      assertThatThrownBy(() -> store.reading(() -> queue.submit(TestCheckpoints.unsaved(1))))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("reading()");
      assertThatThrownBy(() ->
              store.reading(
                  () -> store.save(TestCheckpoints.unsaved(1), TestCheckpoints.options())))
          .isInstanceOf(MisuseException.class);
      assertThatThrownBy(() ->
              store.reading(() -> {
                store.close();
                return "";
              }))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("reading()");
      gate.letPass(1);
      assertThat(savedStep(queue.submit(TestCheckpoints.unsaved(2)))).isEqualTo(2);
    }
  }

  /// Each store has its own saver thread.
  @Test
  void severalStoresInOneProcess() {
    Path other = parent.resolve("other");
    try (CheckpointStore second = TestCheckpoints.open(session, other, Retention.ALL);
        SaveQueue queue = queue(BusyPolicy.WAIT);
        SaveQueue others =
            new SaveQueue(
                second, SnapshotLimits.DEFAULT, BusyPolicy.WAIT, TestCheckpoints.options())) {
      var _ = queue.submit(TestCheckpoints.unsaved(1));
      var _ = others.submit(TestCheckpoints.unsaved(2));
      gate.awaitSaver();
      gate.awaitSaver();
      gate.letPass(2);
    }
    assertThat(wholeSteps()).containsExactly(1L);
    assertThat(TestCheckpoints.requireAllWhole(other, "")).containsExactly(new Name(2, 0));
  }
}
