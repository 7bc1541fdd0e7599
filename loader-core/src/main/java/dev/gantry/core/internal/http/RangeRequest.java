// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.http.Refusal.Kind;
import dev.gantry.core.internal.store.RemoteRequest;
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

/// Asks a server for one range of a file.
abstract class RangeRequest extends RemoteRequest {
  final HttpClient client;
  final HttpStore.Limits limits;
  final Location.Remote location;
  final ReadRequest request;

  private volatile @Nullable URI answeredBy;

  RangeRequest(
      HttpClient client, HttpStore.Limits limits, Location.Remote location, ReadRequest request) {
    super(
        "GET",
        subject(location, request.offset(), request.target().byteSize()),
        request.cancellation());
    this.client = client;
    this.limits = limits;
    this.location = location;
    this.request = request;
  }

  /// Returns the address to ask.
  abstract URI uri();

  /// Returns the validator of the version that the range must be of; empty where that is not known yet.
  abstract String ifRange();

  /// Looks at an answer's head before its body comes; throws to refuse it.
  abstract void check(ResponseInfo answer) throws Refusal;

  /// Whether to ask again, at another [#uri].
  abstract boolean triesAnotherPlace(Refusal refusal);

  /// Called when the range is there, or the file is empty.
  ///
  /// @param from the address that redirects led to
  abstract void arrived(URI from);

  @Override
  protected void completed() {
    URI from = answeredBy;
    arrived(from == null ? uri() : from);
    request.completed();
  }

  @Override
  protected void failed(Throwable reason) {
    request.failed(reason);
  }

  @Override
  protected void attempt() {
    RangeBody body = new RangeBody(request.target());
    if (!begins(body)) {
      return;
    }
    CompletableFuture<HttpResponse<Void>> sent;
    try {
      sent = client.sendAsync(message(), answer -> body.after(() -> check(answer)));
    } catch (RuntimeException | Error e) {
      boolean _ = end(body, e);
      return;
    }
    if (!body.comesBy(sent)) {
      return;
    }
    watch(body, sent, limits.idle());
    var _ =
        sent.whenComplete((answer, failure) -> {
          if (failure == null) {
            succeed(body, answer.uri());
          } else {
            fail(body, failure instanceof CompletionException ? failure.getCause() : failure);
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

  /// Fails the attempt if nothing comes for too long.
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
                }
              }
            });
  }

  private void succeed(RangeBody filled, URI from) {
    answeredBy = from;
    boolean _ = end(filled, null);
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
      boolean _ = end(attempt, failure == null ? new IllegalStateException("no answer") : failure);
    } else if (refusal.kind() == Kind.EMPTY_FILE) {
      succeed(attempt, uri());
    } else if (refusal.kind() == Kind.PASSING
        && attempts() < limits.attempts()
        && !client.isTerminated()) {
      retry(attempt, pause(refusal));
    } else if (triesAnotherPlace(refusal)) {
      retry(attempt, Duration.ZERO);
    } else {
      boolean _ = end(attempt, exception(refusal));
    }
  }

  private static String describe(IOException e) {
    String message = e.getMessage();
    return message == null ? e.getClass().getSimpleName() : message;
  }

  private Duration pause(Refusal refusal) {
    long millis = limits.pause().toMillis() << (2 * (attempts() - 1));
    Duration pause =
        Duration.ofMillis(millis + ThreadLocalRandom.current().nextLong(millis / 2 + 1));
    return refusal.waiting().compareTo(pause) > 0 ? refusal.waiting() : pause;
  }

  private TransferException exception(Refusal refusal) {
    String tries = attempts() > 1 ? ", after " + attempts() + " attempts" : "";
    return failure(
        new Failure.Remote(refusal.status(), refusal.reason() + tries),
        refusal.status() == 0 ? refusal.getCause() : null);
  }
}
