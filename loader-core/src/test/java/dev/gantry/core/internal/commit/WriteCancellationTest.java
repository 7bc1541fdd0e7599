// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.Latches;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Writes that are cancelled or interrupted, and listeners that throw: no file has changed then,
/// and no resource is left.
class WriteCancellationTest extends OldAndNewFiles {
  @ParameterizedTest
  @EnumSource(names = {"PWRITE", "FTRUNCATE", "FSYNC"})
  void cancelledInMidWay(Function function) {
    FaultyFileCalls good = calls();
    WriteReport _ = write(good, options(1));
    int before = function == Function.FSYNC ? NAMES.size() : good.count(function);
    for (int number = 1; number <= before; number++) {
      restore();
      Cancellation cancellation = new Cancellation();
      FaultyFileCalls calls = calls().at(function, number, new After(cancellation::cancel));
      String where = function + " " + number;
      TransferException failure =
          failureOf(() -> write(calls, options(1).withCancellation(cancellation)));
      assertThat(failure).as(where).isNotNull();
      assertThat(failure.failure()).as(where).isEqualTo(new Failure.Cancelled());
      assertThat(failure)
          .hasMessage("save failed: %s and %d more: cancelled", path(0), NAMES.size() - 1);
      assertFiles(0, where);
      assertNothingIsLeft(where);
    }
  }

  @Test
  void aCancellationAfterTheFirstNameComesTooLate() {
    Cancellation cancellation = new Cancellation();
    FaultyFileCalls calls = calls().at(Function.RENAME, 1, new After(cancellation::cancel));
    WriteReport _ = write(calls, options(1).withCancellation(cancellation));
    assertFiles(NAMES.size(), "");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void cancelledOrInterruptedBeforeItBeganThoughNothingIsToBeWritten(boolean interrupted) {
    Cancellation cancellation = new Cancellation();
    if (interrupted) {
      Thread.currentThread().interrupt();
    } else {
      cancellation.cancel();
    }
    TransferException failure;
    try (GantrySession gantry = GantrySession.open()) {
      failure =
          failureOf(() ->
              gantry.write(
                  List.of(new NewFile(path(3), List.of())),
                  options(1).withCancellation(cancellation)));
    }
    assertThat(Thread.interrupted()).isEqualTo(interrupted);
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    assertThat(failure)
        .hasMessage(
            "save failed: %s%s: cancelled",
            path(3), interrupted ? ", on an interrupted thread" : "");
    assertFiles(0, "");
    assertNothingIsLeft("");
  }

  @Test
  void interruptedInMidWay() {
    Thread caller = Thread.currentThread();
    FaultyFileCalls calls =
        calls()
            .at(
                Function.PWRITE,
                2,
                new After(() -> {
                  caller.interrupt();
                  // The call lasts until the caller, which waits for the write, has noticed the
                  // interrupt.
                  Latches.awaitThat(() -> !caller.isInterrupted());
                }));
    TransferException failure = failureOf(() -> write(calls, options(1)));
    assertThat(Thread.interrupted()).as("still interrupted").isTrue();
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    assertFiles(0, "");
    assertNothingIsLeft("");
  }

  /// The listener throws in mid-write, or when it is called after the last byte.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aListenerThatThrows(boolean atTheEnd) {
    CompletableFuture<Void> thrown = new CompletableFuture<>();
    IllegalStateException mine = new IllegalStateException("mine");
    FaultyFileCalls calls = calls();
    if (!atTheEnd) {
      calls.at(Function.PWRITE, 2, new After(thrown::join));
    }
    WriteOptions options =
        options(1)
            .withProgress((done, total) -> {
              if (!atTheEnd || done == total) {
                thrown.complete(null);
                throw mine;
              }
            });
    assertThat(catchThrowable(() -> write(calls, options))).isSameAs(mine);
    assertFiles(0, "");
    assertNothingIsLeft("");
  }
}
