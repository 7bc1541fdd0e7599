// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

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
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Fault;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Returns;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Saves in which each call fails in each way: the older checkpoints are complete, and the next
/// save works and leaves no other file.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class StoreFaultTest {
  private static final int KEPT = 2;
  private static final Name FIRST = new Name(1, 0);
  private static final Name SECOND = new Name(2, 0);
  private static final Name THIRD = new Name(3, 0);
  private static final Name FOURTH = new Name(4, 0);

  /// The calls that are repeated after `EINTR`. A call that always fails with it would be repeated
  /// for ever.
  private static final Set<Function> RETRIED =
      EnumSet.of(
          Function.OPEN, Function.PREAD, Function.PWRITE, Function.FTRUNCATE, Function.FALLOCATE);

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  private final GantrySession session = GantrySession.open();
  private Path template;
  private Path root;

  @BeforeEach
  void saveTwo() {
    template = parent.resolve("template");
    root = parent.resolve("run");
    try (CheckpointStore store = TestCheckpoints.open(session, template, Retention.ALL)) {
      store.save(FIRST.unsaved(), TestCheckpoints.options());
      store.save(SECOND.unsaved(), TestCheckpoints.options());
    }
    TestCheckpoints.copy(template, root);
  }

  @AfterEach
  void close() {
    session.close();
  }

  private void restore() {
    TestCheckpoints.delete(root);
    TestCheckpoints.copy(template, root);
  }

  /// Saves the third checkpoint, and removes the first.
  private void save(FaultyFileCalls calls) {
    try (GantrySession faulty = Sessions.over(calls);
        CheckpointStore store = TestCheckpoints.open(faulty, root, TestCheckpoints.last(KEPT))) {
      store.save(THIRD.unsaved(), TestCheckpoints.options());
    }
  }

  private void saveQueued(FaultyFileCalls calls) {
    try (GantrySession faulty = Sessions.over(calls);
        CheckpointStore store = TestCheckpoints.open(faulty, root, TestCheckpoints.last(KEPT));
        SaveQueue queue =
            new SaveQueue(
                store, SnapshotLimits.DEFAULT, BusyPolicy.WAIT, TestCheckpoints.options())) {
      CompletableFuture<SaveOutcome> saved = queue.submit(THIRD.unsaved());
      Throwable told = catchThrowable(queue::await);
      assertThat(saved).isDone();
      if (told == null) {
        assertThat(saved).isCompleted();
      } else {
        assertThat(catchThrowable(saved::join)).cause().isSameAs(told);
        // The failure is thrown only once.
        queue.await();
        throw (TransferException) told;
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void everyCallFailsInEveryWayOnceAndForGood(Function function) {
    FaultyFileCalls good = new FaultyFileCalls(Libc.INSTANCE);
    save(good);
    assertThat(TestCheckpoints.requireAllWhole(root, "")).containsExactly(SECOND, THIRD);
    for (int number = 1; number <= good.count(function); number++) {
      for (Fault fault :
          List.of(new Fails(Errno.EIO), new Fails(Errno.ENOSPC), new Fails(Errno.EINTR))) {
        tryOut(function, number, fault, false);
        tryOut(function, number, fault, true);
      }
      if (function == Function.PWRITE) {
        tryOut(function, number, new Shortens(1000), false);
        tryOut(function, number, new Shortens(1000), true);
        tryOut(function, number, new Returns(1000), true);
      }
    }
  }

  private static FaultyFileCalls faulty(
      Function function, int number, Fault fault, boolean forGood) {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    if (!forGood) {
      return calls.at(function, number, fault);
    }
    if (!fault.equals(new Fails(Errno.EINTR)) || !RETRIED.contains(function)) {
      return calls.from(function, number, fault);
    }
    for (int again = 0; again < 9; again++) {
      calls.at(function, number + again, fault);
    }
    return calls;
  }

  private void tryOut(Function function, int number, Fault fault, boolean forGood) {
    String where = function + " " + number + " " + fault + (forGood ? " from then on" : " once");
    restore();
    TransferException failure =
        catchThrowableOfType(
            TransferException.class, () -> save(faulty(function, number, fault, forGood)));
    requireAfter(failure, fault, where);
  }

  /// @param failure the failure of the save; null if the save succeeded
  private void requireAfter(@Nullable TransferException failure, Fault fault, String where) {
    List<Name> found = TestCheckpoints.requireAllWhole(root, where);
    if (failure == null) {
      assertThat(found).as(where).contains(SECOND).endsWith(THIRD);
    } else {
      assertThat(fault).as(where).isInstanceOf(Fails.class);
      int code = ((Fails) fault).errno().code();
      assertThat(failure.failure()).as(where).isEqualTo(Errno.failure(code));
      assertThat(found).as(where).startsWith(FIRST, SECOND);
      if (found.contains(THIRD)) {
        assertThat(failure.operation()).as(where).isIn("open", "fsync");
      }
    }
    try {
      assertThat(NoLeaks.openFiles()).as(where).isEmpty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    Name before = found.getLast();
    try (CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(KEPT))) {
      store.save(FOURTH.unsaved(), TestCheckpoints.options());
    }
    assertThat(TestCheckpoints.requireAllWhole(root, where))
        .as("after the next save: %s", where)
        .containsExactly(before, FOURTH);
    TestCheckpoints.requireNoLeftovers(root, where);
  }

  @ParameterizedTest
  @EnumSource
  void throughAQueueToo(Function function) {
    FaultyFileCalls good = new FaultyFileCalls(Libc.INSTANCE);
    saveQueued(good);
    assertThat(TestCheckpoints.requireAllWhole(root, "")).containsExactly(SECOND, THIRD);
    Fault fault = new Fails(Errno.EIO);
    for (int number = 1; number <= good.count(function); number++) {
      int call = number;
      restore();
      TransferException failure =
          catchThrowableOfType(
              TransferException.class, () -> saveQueued(faulty(function, call, fault, false)));
      requireAfter(failure, fault, "queued: " + function + " " + number);
    }
  }

  @Test
  void aStepWhoseSaveFailedIsSavedAgainAndStays() {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    save(calls);
    restore();
    // The last write is the manifest's.
    calls = faulty(Function.PWRITE, calls.count(Function.PWRITE), new Fails(Errno.ENOSPC), false);
    try (GantrySession faulty = Sessions.over(calls);
        CheckpointStore store = TestCheckpoints.open(faulty, root, TestCheckpoints.last(KEPT))) {
      assertThat(catchThrowable(() -> store.save(THIRD.unsaved(), TestCheckpoints.options())))
          .hasMessageContaining("ENOSPC");
      store.save(THIRD.unsaved(), TestCheckpoints.options());
      assertThat(TestCheckpoints.requireAllWhole(root, "")).containsExactly(SECOND, THIRD);
    }
  }

  @Test
  void aStepThatWasRemovedByHandIsSavedAgainAndStays() {
    try (CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(KEPT))) {
      TestCheckpoints.delete(root.resolve("gantry-step-2"));
      store.save(SECOND.unsaved(), TestCheckpoints.options());
      assertThat(TestCheckpoints.requireAllWhole(root, "")).containsExactly(FIRST, SECOND);
    }
  }
}
