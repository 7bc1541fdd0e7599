// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Which calls wait for the saver. A gate holds the saver, so a call that returns has not waited
/// for it; for a call that waits, the test checks the state of its thread.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class SaveQueueTest {
  /// Limits with memory for one snapshot, but not for two.
  private static final SnapshotLimits ONE = new SnapshotLimits(0, 50_000);

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  private final FaultyFileCalls faulty = new FaultyFileCalls(Libc.INSTANCE);
  private final Gate gate = new Gate(faulty);
  private final GantrySession session = Sessions.over(gate);
  private Path root;
  private CheckpointStore store;

  @BeforeEach
  void open() {
    root = parent.resolve("run");
    store = TestCheckpoints.open(session, root, Retention.ALL);
  }

  @AfterEach
  void close() {
    store.close();
    session.close();
  }

  private SaveQueue queue(BusyPolicy policy, SnapshotLimits limits) {
    return new SaveQueue(store, limits, policy, TestCheckpoints.options());
  }

  private SaveQueue queue(BusyPolicy policy) {
    return queue(policy, SnapshotLimits.DEFAULT);
  }

  private record Submitted(CompletableFuture<SaveOutcome> save) {}

  /// A call that runs on its own thread.
  private record Call<T>(Thread thread, FutureTask<T> result) {
    static <T> Call<T> start(Callable<T> work) {
      FutureTask<T> result = new FutureTask<>(work);
      Thread thread = Thread.ofPlatform().start(result);
      return new Call<>(thread, result);
    }

    /// Waits until the call waits.
    void awaitWaiting() {
      while (thread.getState() != Thread.State.WAITING
          && thread.getState() != Thread.State.TIMED_WAITING) {
        assertThat(result).as("returned without waiting").isNotDone();
        assertThat(Thread.currentThread().isInterrupted()).as("out of time").isFalse();
        Thread.onSpinWait();
      }
    }
  }

  private static long savedStep(CompletableFuture<SaveOutcome> save) {
    return switch (save.join()) {
      case SaveOutcome.Saved saved -> saved.checkpoint().step();
      case SaveOutcome.Skipped skipped -> throw new AssertionError(skipped);
    };
  }

  private List<Long> wholeSteps() {
    return TestCheckpoints.requireAllWhole(root, "").stream().map(Name::step).toList();
  }

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

  /// A copier whose work waits for the test.
  private static final class HeldCopier extends ThreadPoolExecutor {
    private final CountDownLatch mayWork = new CountDownLatch(1);

    HeldCopier() {
      super(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
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

  private SaveQueue queue(BusyPolicy policy, SnapshotLimits limits, HeldCopier copier) {
    return new SaveQueue(store, limits, policy, TestCheckpoints.options(), copier);
  }

  @Test
  void anOverlappedSnapshotIsAwaitedByHandAndByClose() throws Exception {
    HeldCopier copier = new HeldCopier();
    CountDownLatch over = new CountDownLatch(1);
    SaveQueue queue = queue(BusyPolicy.WAIT, SnapshotLimits.DEFAULT, copier);
    SaveQueue.Overlapped save = queue.submitOverlapped(TestCheckpoints.unsaved(1), over::countDown);
    Call<Boolean> await =
        Call.start(() -> {
          queue.awaitSnapshot();
          return true;
        });
    await.awaitWaiting();
    Call<Boolean> close =
        Call.start(() -> {
          queue.close();
          return true;
        });
    close.awaitWaiting();
    assertThat(save.copied()).isNotDone();
    assertThat(over.getCount()).isOne();
    copier.mayWork.countDown();
    assertThat(await.result().get()).isTrue();
    assertThat(over.getCount()).isZero();
    assertThat(save.saved()).isNotDone();
    gate.letPass(1);
    assertThat(close.result().get()).isTrue();
    assertThat(savedStep(save.saved())).isEqualTo(1);
    assertThat(wholeSteps()).containsExactly(1L);
  }

  @Test
  void aSaveIsAwaitedWhoseSnapshotIsStillBeingTaken() throws Exception {
    HeldCopier copier = new HeldCopier();
    try (SaveQueue queue = queue(BusyPolicy.WAIT, SnapshotLimits.DEFAULT, copier)) {
      SaveQueue.Overlapped save = queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {});
      Call<Boolean> await =
          Call.start(() -> {
            queue.await();
            return save.saved().isDone();
          });
      try {
        await.awaitWaiting();
      } finally {
        copier.mayWork.countDown();
        gate.letPass(1);
      }
      assertThat(await.result().get()).isTrue();
    }
  }

  @Test
  void anOverlappedSaveThatIsSkippedOrWaitedForLeavesNothingToAwait() {
    HeldCopier copier = new HeldCopier();
    Semaphore over = new Semaphore(0);
    try (SaveQueue queue = queue(BusyPolicy.SKIP, ONE, copier)) {
      var first = queue.submitOverlapped(TestCheckpoints.unsaved(1), over::release);
      var second = queue.submitOverlapped(TestCheckpoints.unsaved(2), over::release);
      assertThat(second.copied()).isDone();
      assertThat(second.saved()).isCompletedWithValue(new SaveOutcome.Skipped(2));
      assertThat(over.availablePermits()).isOne();
      copier.mayWork.countDown();
      gate.letPass(1);
      assertThat(savedStep(first.saved())).isEqualTo(1);
      assertThat(over.availablePermits()).isEqualTo(2);
    }
    SnapshotLimits none = new SnapshotLimits(0, 0);
    try (SaveQueue queue = queue(BusyPolicy.WAIT, none)) {
      gate.letPass(1);
      var third = queue.submitOverlapped(TestCheckpoints.unsaved(3), over::release);
      assertThat(third.copied()).isDone();
      assertThat(savedStep(third.saved())).isEqualTo(3);
      assertThat(over.availablePermits()).isEqualTo(3);
      queue.prepare(TestCheckpoints.unsaved(4)).join();
    }
    assertThat(wholeSteps()).containsExactly(1L, 3L);
  }

  /// The first save's snapshot is still being taken when the second save arrives, for which there
  /// is no memory.
  @Test
  void savesAreWrittenInTheOrderOfTheirPlans() throws Exception {
    HeldCopier copier = new HeldCopier();
    gate.letPass(2);
    try (SaveQueue queue = queue(BusyPolicy.QUEUE, ONE, copier)) {
      List<Long> order = Collections.synchronizedList(new ArrayList<>());
      CompletableFuture<SaveOutcome> first =
          queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {}).saved();
      CompletableFuture<Void> written = first.thenRun(() -> order.add(1L));
      Call<Submitted> second =
          Call.start(() -> {
            Submitted submitted =
                new Submitted(queue.submitOverlapped(TestCheckpoints.unsaved(2), () -> {}).saved());
            order.add(2L);
            return submitted;
          });
      second.awaitWaiting();
      copier.mayWork.countDown();
      assertThat(savedStep(second.result().get().save())).isEqualTo(2);
      written.join();
      assertThat(order).containsExactly(1L, 2L);
    }
    assertThat(wholeSteps()).containsExactly(1L, 2L);
  }

  @Test
  void aFailureOfAnOverlappedSaveIsToldByTheNextCall() {
    faulty.at(Function.FALLOCATE, 1, new Fails(Errno.ENOSPC));
    gate.letPass(1);
    try (SaveQueue queue = queue(BusyPolicy.WAIT, ONE)) {
      queue.prepare(TestCheckpoints.unsaved(1)).join();
      SaveQueue.Overlapped failed = queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {});
      failed.copied().join();
      Throwable onTheFuture = catchThrowable(failed.saved()::join).getCause();
      assertThat(catchThrowable(() -> queue.submitOverlapped(TestCheckpoints.unsaved(2), () -> {})))
          .isSameAs(onTheFuture)
          .hasMessageContaining("ENOSPC");
      gate.letPass(1);
      assertThat(savedStep(queue.submitOverlapped(TestCheckpoints.unsaved(3), () -> {}).saved()))
          .isEqualTo(3);
    }
    assertThat(wholeSteps()).containsExactly(3L);
  }

  @Test
  void aSnapshotThatFailsLeavesRoomForTheNextSave() {
    try (SaveQueue queue = queue(BusyPolicy.SKIP, ONE)) {
      UnsavedCheckpoint closed;
      try (Arena arena = Arena.ofShared()) {
        closed = ofMemory(arena);
      }
      assertThatThrownBy(() -> queue.submit(closed)).isInstanceOf(RuntimeException.class);
      gate.letPass(1);
      assertThat(savedStep(queue.submit(TestCheckpoints.unsaved(2)))).isEqualTo(2);
    }
    assertThat(wholeSteps()).containsExactly(2L);
  }

  private static UnsavedCheckpoint ofMemory(Arena arena) {
    NewTensor tensor =
        new NewTensor("t", DType.U8, TensorShape.of(9), new Memory.OnHost(arena.allocate(9)));
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", List.of(tensor));
    return new UnsavedCheckpoint(1, groups, Map.of(), Map.of(), Map.of());
  }

  @Test
  void anOverlappedSnapshotThatFailsIsASaveThatFailed() {
    HeldCopier copier = new HeldCopier();
    CountDownLatch over = new CountDownLatch(1);
    try (SaveQueue queue = queue(BusyPolicy.WAIT, ONE, copier)) {
      SaveQueue.Overlapped failed;
      try (Arena arena = Arena.ofShared()) {
        failed = queue.submitOverlapped(ofMemory(arena), over::countDown);
      }
      copier.mayWork.countDown();
      Throwable onTheFuture = catchThrowable(failed.saved()::join).getCause();
      assertThat(failed.copied().join()).isNull();
      assertThat(over.getCount()).isZero();
      assertThat(catchThrowable(queue::await)).isSameAs(onTheFuture);
      gate.letPass(1);
      assertThat(savedStep(queue.submit(TestCheckpoints.unsaved(2)))).isEqualTo(2);
    }
    assertThat(wholeSteps()).containsExactly(2L);
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
      assertThat(((TransferException) told).failure()).isEqualTo(new Failure.Cancelled());
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
