// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.testing.Latches;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Tests how a request ends whose attempts the test ends itself.
@Timeout(60)
class RequestEndTest {
  private final Cancellation cancellation = new Cancellation();

  private static final class Request extends RemoteRequest {
    private final List<Attempt> begun = new CopyOnWriteArrayList<>();
    private final CompletableFuture<Void> end = new CompletableFuture<>();
    private final Runnable stop;

    /// @param stop what each attempt does when it is stopped
    Request(Cancellation cancellation, int attempts, Runnable stop) {
      super(
          "GET",
          "here",
          cancellation,
          new RetryLimits(attempts, Duration.ofMinutes(1), Duration.ofMinutes(1)),
          () -> true);
      this.stop = stop;
    }

    @Override
    protected void attempt() {
      Attempt attempt = stop::run;
      if (begins(attempt)) {
        begun.add(attempt);
      }
    }

    @Override
    protected void completed() {
      boolean _ = end.complete(null);
    }

    @Override
    protected void failed(Throwable reason) {
      boolean _ = end.completeExceptionally(reason);
    }
  }

  @Test
  void aCancellationWaitsForAnAttemptThatIsBeingStoppedAlsoIfItIsInterrupted() throws Exception {
    CountDownLatch stopping = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    Request request =
        new Request(
            cancellation,
            2,
            () -> {
              stopping.countDown();
              Latches.await(goOn);
            });
    request.start();
    Thread failing =
        Thread.ofPlatform()
            .start(() -> request.fail(request.begun.getFirst(), RemoteFault.passing("for now")));
    Latches.await(stopping);
    CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
    Thread cancelling =
        Thread.ofPlatform()
            .start(() -> {
              cancellation.cancel();
              interrupted.complete(Thread.interrupted());
            });
    Latches.awaitThat(() -> cancelling.getState() == Thread.State.WAITING);
    cancelling.interrupt();
    assertThat(request.end).isNotDone();
    goOn.countDown();
    assertThat(interrupted.get()).isTrue();
    assertThat(request.end.exceptionNow())
        .isInstanceOfSatisfying(
            TransferException.class,
            e -> assertThat(e.failure()).isEqualTo(new Failure.Cancelled()));
    failing.join();
  }

  @Test
  void noSecondAttemptIsMadeBesideTheLast() {
    Request request = new Request(cancellation, 1, () -> {});
    request.start();
    request.hedge();
    assertThat(request.begun).hasSize(1);
    request.succeed(request.begun.getFirst());
    assertThat(request.end).isCompleted();
  }

  @Test
  void aRequestOfOneAttemptDoesNotSayThatTheLoadFailedTooOften() {
    Request request = new Request(cancellation, 1, () -> {});
    request.start();
    request.fail(request.begun.getFirst(), RemoteFault.passing("for now"));
    assertThat(request.end.exceptionNow()).hasMessageEndingWith("for now");
  }

  /// A cancellation may live for many loads.
  @Test
  void theCancellationForgetsARequestThatHasEnded() {
    WeakReference<Request> ended = new WeakReference<>(ended());
    Latches.awaitThat(() -> {
      System.gc();
      return ended.refersTo(null);
    });
    cancellation.cancel();
  }

  private Request ended() {
    Request request = new Request(cancellation, 1, () -> {});
    request.start();
    request.succeed(request.begun.getFirst());
    return request;
  }

  @Test
  void twoAttemptsAtOnceAreTheMost() {
    Request request = new Request(cancellation, 5, () -> {});
    request.start();
    request.hedge();
    request.hedge();
    assertThat(request.begun).hasSize(2);
    request.succeed(request.begun.getLast());
  }

  /// The attempt that is still under way would write to memory that the caller uses.
  @Test
  void theAttemptThatComesFirstStopsTheOther() {
    AtomicInteger stopped = new AtomicInteger();
    Request request = new Request(cancellation, 2, stopped::incrementAndGet);
    request.start();
    request.hedge();
    request.succeed(request.begun.getFirst());
    assertThat(request.end).isCompleted();
    assertThat(stopped).hasValue(2);
  }

  @Test
  void anAttemptThatWasStoppedEndsNothingAnyMore() {
    Request request = new Request(cancellation, 2, () -> {});
    request.start();
    request.hedge();
    request.fail(request.begun.getFirst(), RemoteFault.passing("for now"));
    request.succeed(request.begun.getFirst());
    assertThat(request.end).isNotDone();
    request.succeed(request.begun.getLast());
    assertThat(request.end).isCompleted();
  }

  @Test
  void aLastingFaultOfOneOfTwoAttemptsEndsTheRequest() {
    Request request = new Request(cancellation, 5, () -> {});
    request.start();
    request.hedge();
    request.fail(request.begun.getFirst(), RemoteFault.lasting(404, "Not Found"));
    assertThat(request.end.exceptionNow()).hasMessageContaining("Not Found");
  }

  @Test
  void aServerThatAsksToWaitIsWaitedForAMinuteAtMost() {
    RetryLimits limits = new RetryLimits(5, Duration.ofMillis(1), Duration.ofMinutes(1));
    assertThat(limits.pauseAfter(1, RemoteFault.of(true, 503, "busy", "7")))
        .contains(Duration.ofSeconds(7));
    assertThat(limits.pauseAfter(1, RemoteFault.of(true, 503, "busy", "61"))).isEmpty();
    assertThat(limits.pauseAfter(5, RemoteFault.of(true, 503, "busy", "7"))).isEmpty();
  }

  @Test
  void pausesGrowToTenSeconds() {
    RetryLimits limits = new RetryLimits(30, Duration.ofMillis(200), Duration.ofMinutes(1));
    assertThat(limits.pauseAfter(20, RemoteFault.passing("for now")))
        .hasValueSatisfying(
            pause -> assertThat(pause).isBetween(Duration.ofSeconds(5), Duration.ofSeconds(10)));
  }
}
