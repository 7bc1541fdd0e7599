// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RemoteRequest;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.spi.ReadRequest;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/// Requests one range of a file from a server, and follows redirects. Each address is sent its own
/// headers.
final class RangeRequest extends RemoteRequest {
  /// The statuses by which a server says that the address of a redirect has expired.
  private static final Set<Integer> EXPIRED = Set.of(401, 403, 404, 410);

  private final HttpFile file;
  private final ReadRequest request;

  /// Whether the address of a redirect had expired, so that the first address was asked again.
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
    RangeAttempt attempt = new RangeAttempt(request, uri());
    if (!begins(attempt)) {
      return;
    }
    watch(attempt, file.limits.idle());
    var _ = WorkerThreads.start(1, "gantry-http-", () -> run(attempt));
  }

  private void run(RangeAttempt attempt) {
    try {
      try {
        file.resolved(fetch(attempt));
        succeed(attempt);
      } catch (IOException e) {
        failed(attempt, e instanceof RemoteFault known ? known : lost(e));
      }
    } catch (RuntimeException | Error e) {
      end(attempt, e);
    }
  }

  /// @return the address that served the range
  private URI fetch(RangeAttempt attempt) throws IOException {
    URI from = attempt.address();
    for (int redirects = 0; ; redirects++) {
      Optional<URI> next = fetch(attempt, from, redirects < Redirects.MAX);
      if (next.isEmpty()) {
        return from;
      }
      from = next.get();
    }
  }

  /// @return the address that the answer redirects to; empty if the answer had the range
  private Optional<URI> fetch(RangeAttempt attempt, URI from, boolean mayRedirect)
      throws IOException {
    Connections connections = file.store.connections();
    Connection connection = connections.ask(message(from), attempt);
    try {
      AnswerHead head = connection.head();
      Optional<URI> target = mayRedirect ? Redirects.target(from, head) : Optional.empty();
      if (target.isEmpty()) {
        file.check(head, request.offset(), request.target().byteSize());
        attempt.fill(connection);
      }
      return target;
    } finally {
      attempt.leaves();
      connections.giveBack(connection);
    }
  }

  private HttpRequest message(URI from) throws IOException {
    long offset = request.offset();
    long last = offset + request.target().byteSize() - 1;
    String range = "bytes=" + offset + "-" + last;
    HttpRequest.Builder builder =
        HttpRequest.newBuilder(from)
            .header("Range", range)
            .header("Accept-Encoding", "identity")
            .header("User-Agent", "gantry");
    file.headers.of("GET", from, range).forEach(builder::header);
    if (!file.validator().isEmpty()) {
      builder.header("If-Range", file.validator());
    }
    return builder.build();
  }

  /// Fails the attempt if too few bytes are received for too long.
  private void watch(RangeAttempt watched, Duration wait) {
    CompletableFuture<Void> timer = new CompletableFuture<>();
    var _ = watched.over().whenComplete((_, _) -> timer.complete(null));
    var _ =
        timer
            .orTimeout(wait.toNanos(), TimeUnit.NANOSECONDS)
            .whenComplete((_, late) -> {
              if (late instanceof TimeoutException) {
                Duration left = file.limits.idle().minus(watched.idle());
                if (left.isPositive()) {
                  watch(watched, left);
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

  private void failed(RangeAttempt attempt, RemoteFault fault) {
    if (file.isEmpty()) {
      succeed(attempt);
    } else if (EXPIRED.contains(fault.status()) && !attempt.address().equals(file.original)) {
      if (resolvedAgain) {
        // Another attempt met the same, so one that asks the first address runs or follows.
        leave(attempt);
      } else {
        resolvedAgain = true;
        retry(attempt, 0);
      }
    } else {
      fail(attempt, fault);
    }
  }

  /// Returns the fault for a lost connection, which the closing of the session may have caused.
  private RemoteFault lost(IOException e) {
    if (file.store.isClosed()) {
      return Connections.sessionClosed();
    }
    String message = e.getMessage();
    String reason = message == null ? e.getClass().getSimpleName() : message;
    // A server that answered before may be restarting. If it never answered, nothing listens there.
    return e instanceof ConnectException && !file.isKnown()
        ? RemoteFault.lasting(
            0, uri().getScheme() + "://" + uri().getAuthority() + " was not reached: " + reason)
        : RemoteFault.passing("connection failed: " + reason);
  }
}
