// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.http.Refusal.Kind;
import dev.gantry.core.spi.ReadRequest;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.ResponseInfo;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/// Asks for one range until it is there, an answer is final, the attempts are used up or the
/// request is cancelled. No thread waits meanwhile.
abstract class RangeRequest {
  final HttpClient client;
  final HttpStore.Limits limits;
  final Location.Remote location;
  final ReadRequest request;

  private Runnable forget = () -> {};
  private int attempts;
  private @Nullable RangeBody body;
  private @Nullable CompletableFuture<?> exchange;
  private boolean ended;

  RangeRequest(
      HttpClient client, HttpStore.Limits limits, Location.Remote location, ReadRequest request) {
    this.client = client;
    this.limits = limits;
    this.location = location;
    this.request = request;
  }

  /// Where to ask.
  abstract URI uri();

  /// The version that the range must be of; empty where that is not known yet.
  abstract String ifRange();

  /// Looks at an answer before its body comes.
  abstract void check(ResponseInfo answer) throws Refusal;

  /// Whether to ask again, at another [#uri].
  abstract boolean triesAnotherPlace(Refusal refusal);

  /// The range is there.
  abstract void arrived(URI from);

  final void start() {
    Runnable registered = request.cancellation().whenCancelled(this::cancel);
    synchronized (this) {
      forget = registered;
      if (ended) {
        return;
      }
    }
    attempt();
  }

  private void attempt() {
    RangeBody fresh = new RangeBody(request.target());
    synchronized (this) {
      if (ended) {
        return;
      }
      attempts++;
      body = fresh;
    }
    CompletableFuture<HttpResponse<Void>> sent;
    try {
      sent = client.sendAsync(message(), answer -> fresh.after(() -> check(answer)));
    } catch (RuntimeException | Error e) {
      end(fresh, e);
      return;
    }
    boolean over;
    synchronized (this) {
      exchange = sent;
      over = ended;
    }
    if (over) {
      // It was cancelled before it could be told: the
      // server's answer would keep this until it comes.
      boolean _ = sent.cancel(true);
      return;
    }
    watch(fresh, sent, limits.idle());
    var _ =
        sent.whenComplete((answer, failure) -> {
          if (failure == null) {
            succeed(fresh, answer.uri());
          } else {
            fail(fresh, failure instanceof CompletionException ? failure.getCause() : failure);
          }
        });
  }

  private HttpRequest message() {
    long offset = request.offset();
    long last = offset + request.target().byteSize() - 1;
    HttpRequest.Builder builder =
        HttpRequest.newBuilder(uri())
            .header("Range", "bytes=" + offset + "-" + last)
            .header("Accept-Encoding", "identity")
            .header("User-Agent", "gantry");
    if (!ifRange().isEmpty()) {
      builder.header("If-Range", ifRange());
    }
    return builder.build();
  }

  /// Fails the attempt where nothing has come for too long.
  private void watch(RangeBody watched, CompletableFuture<?> sent, Duration wait) {
    CompletableFuture<Void> timer = new CompletableFuture<>();
    var _ = sent.whenComplete((_, _) -> timer.complete(null));
    var _ =
        timer
            .orTimeout(wait.toNanos(), TimeUnit.NANOSECONDS)
            .whenComplete((_, late) -> {
              if (late instanceof TimeoutException) {
                Duration left = limits.idle().minus(watched.idle());
                if (left.isPositive()) {
                  watch(watched, sent, left);
                } else {
                  String reason = "no byte came for " + limits.idle().toMillis() + " ms";
                  fail(watched, new Refusal(Kind.PASSING, 0, reason));
                  boolean _ = sent.cancel(true);
                }
              }
            });
  }

  private void succeed(RangeBody filled, URI from) {
    if (!isEnding(filled, true)) {
      return;
    }
    arrived(from);
    request.completed();
  }

  /// Whether this attempt has ended just now, and with it, where `forGood`, the request. From then
  /// on nothing of the attempt touches the target.
  private boolean isEnding(RangeBody attempt, boolean forGood) {
    Runnable forgotten;
    synchronized (this) {
      if (ended || attempt != body) {
        return false;
      }
      body = null;
      ended = forGood;
      forgotten = forget;
    }
    attempt.stop();
    if (forGood) {
      forgotten.run();
    }
    return true;
  }

  private void fail(RangeBody attempt, @Nullable Throwable failure) {
    Refusal refusal =
        switch (failure) {
          case Refusal known -> known;
          case IOException e ->
              e.getCause() instanceof Refusal known
                  ? known
                  : new Refusal(Kind.PASSING, 0, "connection failed: " + describe(e));
          case null, default -> null;
        };
    if (refusal == null) {
      end(attempt, failure == null ? new IllegalStateException("no answer") : failure);
    } else if (refusal.kind() == Kind.EMPTY_FILE) {
      succeed(attempt, uri());
    } else if (refusal.kind() == Kind.PASSING
        && attempts < limits.attempts()
        && !client.isTerminated()) {
      again(attempt, pause(refusal));
    } else if (triesAnotherPlace(refusal)) {
      again(attempt, Duration.ZERO);
    } else {
      end(attempt, exception(refusal));
    }
  }

  private static String describe(IOException e) {
    String message = e.getMessage();
    return message == null ? e.getClass().getSimpleName() : message;
  }

  private Duration pause(Refusal refusal) {
    long millis = limits.pause().toMillis() << (2 * (attempts - 1));
    Duration pause =
        Duration.ofMillis(millis + ThreadLocalRandom.current().nextLong(millis / 2 + 1));
    return refusal.waiting().compareTo(pause) > 0 ? refusal.waiting() : pause;
  }

  private void again(RangeBody attempt, Duration pause) {
    if (isEnding(attempt, false)) {
      CompletableFuture.delayedExecutor(pause.toMillis(), TimeUnit.MILLISECONDS)
          .execute(this::attempt);
    }
  }

  private void end(RangeBody attempt, Throwable reason) {
    if (isEnding(attempt, true)) {
      request.failed(reason);
    }
  }

  private void cancel() {
    RangeBody cancelled;
    CompletableFuture<?> sent;
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
      cancelled = body;
      sent = exchange;
    }
    if (cancelled != null) {
      cancelled.stop();
    }
    if (sent != null) {
      boolean _ = sent.cancel(true);
    }
    request.failed(new TransferException("GET", subject(), new Failure.Cancelled()));
  }

  private TransferException exception(Refusal refusal) {
    String tries = attempts > 1 ? ", after " + attempts + " attempts" : "";
    return new TransferException(
        "GET",
        subject(),
        new Failure.Remote(refusal.status(), refusal.reason() + tries),
        refusal.status() == 0 ? refusal.getCause() : null);
  }

  private String subject() {
    return location + " offset " + request.offset() + " length " + request.target().byteSize();
  }
}
