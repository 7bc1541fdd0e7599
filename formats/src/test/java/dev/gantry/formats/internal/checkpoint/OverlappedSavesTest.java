// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.Test;

/// Saves whose snapshots are taken in the background, too.
class OverlappedSavesTest extends SaveQueueFixture {
  @Test
  void anOverlappedSnapshotIsAwaitedByHandAndByClose() throws Exception {
    HeldCopier copier = new HeldCopier();
    CountDownLatch over = new CountDownLatch(1);
    SaveQueue queue = queue(BusyPolicy.WAIT, SnapshotLimits.DEFAULT, copier);
    SaveQueue.Overlapped save =
        queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {}, over::countDown);
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
      SaveQueue.Overlapped save =
          queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {}, () -> {});
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
      var first = queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {}, over::release);
      var second = queue.submitOverlapped(TestCheckpoints.unsaved(2), () -> {}, over::release);
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
      var third = queue.submitOverlapped(TestCheckpoints.unsaved(3), () -> {}, over::release);
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
          queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {}, () -> {}).saved();
      CompletableFuture<Void> written = first.thenRun(() -> order.add(1L));
      Call<Submitted> second =
          Call.start(() -> {
            Submitted submitted =
                new Submitted(
                    queue.submitOverlapped(TestCheckpoints.unsaved(2), () -> {}, () -> {}).saved());
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
      SaveQueue.Overlapped failed =
          queue.submitOverlapped(TestCheckpoints.unsaved(1), () -> {}, () -> {});
      failed.copied().join();
      Throwable onTheFuture = catchThrowable(failed.saved()::join).getCause();
      assertThat(
              catchThrowable(
                  () -> queue.submitOverlapped(TestCheckpoints.unsaved(2), () -> {}, () -> {})))
          .isSameAs(onTheFuture)
          .hasMessageContaining("ENOSPC");
      gate.letPass(1);
      assertThat(
              savedStep(
                  queue.submitOverlapped(TestCheckpoints.unsaved(3), () -> {}, () -> {}).saved()))
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
      requireMemoryForTheNext(queue);
    }
    assertThat(wholeSteps()).containsExactly(2L);
  }

  private void requireMemoryForTheNext(SaveQueue queue) {
    // This call would wait for the gate if there were no memory for another snapshot.
    CompletableFuture<SaveOutcome> next = queue.submit(TestCheckpoints.unsaved(2));
    gate.letPass(1);
    assertThat(savedStep(next)).isEqualTo(2);
  }

  /// Its snapshot and one of [TestCheckpoints] do not fit into the limit together.
  private static UnsavedCheckpoint ofMemory(Arena arena) {
    int bytes = 30_000;
    NewTensor tensor =
        new NewTensor(
            "t", DType.U8, TensorShape.of(bytes), new Memory.OnHost(arena.allocate(bytes)));
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
        failed = queue.submitOverlapped(ofMemory(arena), () -> {}, over::countDown);
      }
      copier.mayWork.countDown();
      Throwable onTheFuture = catchThrowable(failed.saved()::join).getCause();
      assertThat(failed.copied().join()).isNull();
      assertThat(over.getCount()).isZero();
      assertThat(catchThrowable(queue::await)).isSameAs(onTheFuture);
      requireMemoryForTheNext(queue);
    }
    assertThat(wholeSteps()).containsExactly(2L);
  }
}
