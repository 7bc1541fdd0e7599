// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Cancellation;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Requests for whose attempts the heap has no space.
@Timeout(60)
class RemoteRequestTest {
  private final OutOfMemoryError none = new OutOfMemoryError("made up");
  private final CompletableFuture<Throwable> failure = new CompletableFuture<>();
  private final AtomicInteger stopped = new AtomicInteger();

  /// A request whose attempts fail with a passing fault until one attempt finds no heap.
  private final class Request extends RemoteRequest {
    private final AtomicInteger attempts = new AtomicInteger();
    private final int without;
    private final boolean fails;
    private @Nullable Attempt first;
    private boolean firstFails;

    /// @param without the number of the attempt that finds no heap
    /// @param fails whether the attempts before it fail or continue
    Request(int without, boolean fails) {
      super(
          "GET",
          "here",
          new Cancellation(),
          new RetryLimits(5, Duration.ofMillis(1), Duration.ofSeconds(30)),
          () -> true);
      this.without = without;
      this.fails = fails;
    }

    @Override
    protected void attempt() {
      Attempt attempt = stopped::incrementAndGet;
      if (!begins(attempt)) {
        return;
      }
      first = first == null ? attempt : first;
      if (attempts.incrementAndGet() == without) {
        if (firstFails) {
          fail(first, RemoteFault.passing("for now"));
        }
        throw none;
      }
      if (fails) {
        fail(attempt, RemoteFault.passing("for now"));
      }
    }

    @Override
    protected void failed(Throwable reason) {
      assertThat(failure.complete(reason)).as("failed once").isTrue();
    }

    @Override
    protected void completed() {
      throw new AssertionError("nothing came");
    }
  }

  private Throwable failure() throws InterruptedException, ExecutionException, TimeoutException {
    return failure.get(30, TimeUnit.SECONDS);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void anAttemptThatCannotBeginEndsItsRequest(int attempt) throws Exception {
    new Request(attempt, true).start();
    assertThat(failure()).isSameAs(none);
    assertThat(stopped).hasValue(attempt);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aSecondAttemptThatCannotBeginLeavesTheFirstAlone(boolean firstFails) throws Exception {
    Request request = new Request(2, false);
    request.start();
    request.firstFails = firstFails;
    request.hedge();
    if (firstFails) {
      assertThat(failure()).isSameAs(none);
      assertThat(stopped).hasValue(2);
    } else {
      assertThat(failure).isNotDone();
      assertThat(stopped).as("the second").hasValue(1);
      request.end(request.first, none);
      assertThat(stopped).hasValue(2);
    }
  }
}
