// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RemoteRequest;
import dev.gantry.core.internal.store.RetryLimits;
import java.lang.foreign.MemorySegment;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow.Subscription;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/// Copies an answer's body straight to where it is wanted, as it comes.
final class RangeBody implements BodySubscriber<Void>, RemoteRequest.Attempt {
  private final MemorySegment target;
  private final CompletableFuture<Void> body = new CompletableFuture<>();
  private @Nullable Subscription subscription;
  private @Nullable Future<?> exchange;
  private long received;
  private boolean stopped;
  private volatile long progressNanos = System.nanoTime();

  /// How many bytes had come at the time of [#progressNanos].
  private long progressBytes;

  RangeBody(MemorySegment target) {
    this.target = target;
  }

  /// Says that the answer has begun.
  void begun() {
    progressNanos = System.nanoTime();
  }

  /// Returns for how long less has come than [RetryLimits#LEAST_BYTES].
  Duration idle() {
    return Duration.ofNanos(System.nanoTime() - progressNanos);
  }

  /// Says which exchange brings the body, so that [#stop] can cancel it.
  ///
  /// @return false if the attempt was stopped before. The exchange is cancelled then, since it would keep this
  ///     in memory until the server answers
  boolean comesBy(Future<?> sent) {
    synchronized (this) {
      exchange = sent;
      if (!stopped) {
        return true;
      }
    }
    boolean _ = sent.cancel(true);
    return false;
  }

  @Override
  public void stop() {
    Future<?> sent;
    synchronized (this) {
      stopped = true;
      sent = exchange;
    }
    if (sent != null) {
      boolean _ = sent.cancel(true);
    }
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
    Subscription from;
    synchronized (this) {
      from = subscription;
      if (stopped || body.isDone() || from == null) {
        return;
      }
      for (ByteBuffer buffer : buffers) {
        int count = buffer.remaining();
        if (count > target.byteSize() - received) {
          refuse(RemoteFault.lasting(0, "the server sent more bytes than it was asked for"));
          break;
        }
        MemorySegment.copy(MemorySegment.ofBuffer(buffer), 0, target, received, count);
        received += count;
      }
      if (received - progressBytes >= RetryLimits.LEAST_BYTES || received == target.byteSize()) {
        progressBytes = received;
        progressNanos = System.nanoTime();
      }
    }
    if (body.isDone()) {
      from.cancel();
    } else {
      from.request(1);
    }
  }

  /// Refuses the body.
  void refuse(RemoteFault refusal) {
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
          RemoteFault.passing(
              "the answer ended after " + count + " of " + target.byteSize() + " bytes"));
    } else {
      boolean _ = body.complete(null);
    }
  }
}
