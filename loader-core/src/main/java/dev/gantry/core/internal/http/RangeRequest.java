// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.Failure;
import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RemoteRequest;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.spi.ReadRequest;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscribers;
import java.net.http.HttpResponse.ResponseInfo;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/// Asks a server for one range of a file. Follows redirects itself, since the JDK's client would send one address's
/// headers to the next.
final class RangeRequest extends RemoteRequest {
  /// The statuses by which a server says that the address to which a redirect led has expired.
  private static final Set<Integer> EXPIRED = Set.of(401, 403, 404, 410);

  private final HttpFile file;
  private final ReadRequest request;

  /// Whether the address to which a redirect led had expired, so that the redirect is followed anew.
  private volatile boolean resolvedAgain;

  RangeRequest(HttpFile file, ReadRequest request) {
    super(
        "GET",
        subject(file.location, request.offset(), request.target().byteSize()),
        request.cancellation(),
        file.limits,
        request::mayRetry);
    this.file = file;
    this.request = request;
  }

  private URI uri() {
    return resolvedAgain ? file.original : file.resolved();
  }

  @Override
  protected void completed() {
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
    if (file.store.isClosed()) {
      end(body, failure(new Failure.Remote(0, "its session is closed"), null));
      return;
    }
    CompletableFuture<HttpResponse<Void>> sent;
    try {
      sent = send(uri(), body, Redirects.MAX);
    } catch (RuntimeException | Error e) {
      end(body, e);
      return;
    }
    watch(body, sent, file.limits.idle());
    var _ =
        sent.whenComplete((answer, failure) -> {
          if (failure == null) {
            succeed(body, answer.uri());
          } else {
            failed(body, failure instanceof CompletionException ? failure.getCause() : failure);
          }
        });
  }

  /// @param redirects how many redirects may still be followed
  private CompletableFuture<HttpResponse<Void>> send(URI from, RangeBody body, int redirects) {
    CompletableFuture<HttpResponse<Void>> sent =
        file.store
            .client()
            .sendAsync(
                message(from),
                answer ->
                    redirects > 0 && Redirects.target(from, answer).isPresent()
                        ? BodySubscribers.discarding()
                        : checked(answer, body));
    if (!body.comesBy(sent)) {
      return sent;
    }
    return sent.thenCompose(answer ->
        redirects == 0
            ? sent
            : Redirects.target(from, answer.statusCode(), answer.headers())
                .map(target -> send(target, body, redirects - 1))
                .orElse(sent));
  }

  /// Returns the body, which refuses the answer's bytes if its head is wrong.
  private RangeBody checked(ResponseInfo answer, RangeBody body) {
    body.begun();
    try {
      file.check(answer, request.offset(), request.target().byteSize());
    } catch (RemoteFault refusal) {
      body.refuse(refusal);
    }
    return body;
  }

  private HttpRequest message(URI from) {
    long offset = request.offset();
    long last = offset + request.target().byteSize() - 1;
    HttpRequest.Builder builder =
        HttpRequest.newBuilder(from)
            .header("Range", "bytes=" + offset + "-" + last)
            .header("Accept-Encoding", "identity")
            .header("User-Agent", "gantry");
    file.headers.apply(from).forEach(builder::header);
    if (!file.validator().isEmpty()) {
      builder.header("If-Range", file.validator());
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
                Duration left = file.limits.idle().minus(watched.idle());
                if (left.isPositive()) {
                  watch(watched, sent, left);
                } else {
                  fail(
                      watched,
                      RemoteFault.passing(
                          "fewer than %d bytes came within %d ms"
                              .formatted(RetryLimits.LEAST_BYTES, file.limits.idle().toMillis())));
                }
              }
            });
  }

  private void succeed(RangeBody filled, URI from) {
    file.resolved(from);
    succeed(filled);
  }

  private void failed(RangeBody attempt, @Nullable Throwable failure) {
    RemoteFault fault =
        switch (failure) {
          case RemoteFault known -> known;
          case IOException e -> e.getCause() instanceof RemoteFault known ? known : lost(e);
          case null, default -> null;
        };
    if (fault == null) {
      end(attempt, failure == null ? new IllegalStateException("no answer") : failure);
    } else if (file.isEmpty()) {
      succeed(attempt, uri());
    } else if (EXPIRED.contains(fault.status()) && !uri().equals(file.original)) {
      resolvedAgain = true;
      retry(attempt, 0);
    } else {
      fail(attempt, fault);
    }
  }

  /// The connection was lost, maybe because the session was closed.
  private RemoteFault lost(IOException e) {
    String message = e.getMessage();
    String reason =
        "connection failed: " + (message == null ? e.getClass().getSimpleName() : message);
    return file.store.isClosed() ? RemoteFault.lasting(0, reason) : RemoteFault.passing(reason);
  }
}
