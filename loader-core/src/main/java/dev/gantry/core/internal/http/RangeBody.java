// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.internal.http.Refusal.Kind;
import java.lang.foreign.MemorySegment;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow.Subscription;
import org.jspecify.annotations.Nullable;

/// Copies an answer's body straight to where it is wanted, as it comes.
final class RangeBody implements BodySubscriber<Void> {
  /// What may refuse an answer.
  @FunctionalInterface
  interface Check {
    void run() throws Refusal;
  }

  private final MemorySegment target;
  private final CompletableFuture<Void> body = new CompletableFuture<>();
  private @Nullable Subscription subscription;
  private long received;
  private boolean stopped;
  private volatile long progressNanos = System.nanoTime();

  RangeBody(MemorySegment target) {
    this.target = target;
  }

  /// This, to take the body if `check` passes, else to refuse it.
  RangeBody after(Check check) {
    progressNanos = System.nanoTime();
    try {
      check.run();
    } catch (Refusal refusal) {
      refuse(refusal);
    }
    return this;
  }

  /// For how long nothing has come.
  Duration idle() {
    return Duration.ofNanos(System.nanoTime() - progressNanos);
  }

  /// Touches the target no more.
  synchronized void stop() {
    stopped = true;
  }

  @Override
  public CompletionStage<Void> getBody() {
    return body;
  }

  @Override
  public void onSubscribe(Subscription subscribed) {
    synchronized (this) {
      subscription = subscribed;
    }
    if (body.isDone()) {
      subscribed.cancel();
    } else {
      subscribed.request(1);
    }
  }

  @Override
  public void onNext(List<ByteBuffer> buffers) {
    progressNanos = System.nanoTime();
    Subscription from;
    synchronized (this) {
      from = subscription;
      if (stopped || body.isDone() || from == null) {
        return;
      }
      for (ByteBuffer buffer : buffers) {
        int count = buffer.remaining();
        if (count > target.byteSize() - received) {
          refuse(new Refusal(Kind.FINAL, 0, "the server sent more bytes than it was asked for"));
          break;
        }
        MemorySegment.copy(MemorySegment.ofBuffer(buffer), 0, target, received, count);
        received += count;
      }
    }
    if (body.isDone()) {
      from.cancel();
    } else {
      from.request(1);
    }
  }

  private void refuse(Refusal refusal) {
    boolean _ = body.completeExceptionally(refusal);
  }

  @Override
  public void onError(Throwable failure) {
    boolean _ = body.completeExceptionally(failure);
  }

  @Override
  public void onComplete() {
    long count;
    synchronized (this) {
      count = received;
    }
    if (count < target.byteSize()) {
      refuse(
          new Refusal(
              Kind.PASSING,
              0,
              "the answer ended after " + count + " of " + target.byteSize() + " bytes"));
    } else {
      boolean _ = body.complete(null);
    }
  }
}
