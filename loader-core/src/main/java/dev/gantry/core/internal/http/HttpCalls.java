// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RetryLimits;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;

/// Requests that are not for ranges, such as one for a list of files. Each call waits for the
/// server's answer; an interrupt ends the wait. Thread-safe.
public final class HttpCalls {
  private static final RetryLimits LIMITS = RetryLimits.DEFAULT;

  private final HttpStore http;
  private final RequestHeaders headers;
  private final Predicate<URI> home;

  /// @param home the addresses to which a redirect of `HEAD` is followed; an answer from another
  ///     address would not describe the requested file
  public HttpCalls(HttpStore http, RequestHeaders headers, Predicate<URI> home) {
    this.http = http;
    this.headers = headers;
    this.home = home;
  }

  /// Repeats a request until an answer is final; a refusal is final, too.
  ///
  /// @param limit how long an attempt may take
  /// @param patient whether to ask again after transient failures
  /// @throws IOException if no answer arrived
  public <T> HttpResponse<T> send(
      String method, URI uri, BodyHandler<T> body, Duration limit, boolean patient)
      throws IOException, InterruptedException {
    for (int attempt = 1; ; attempt++) {
      Optional<Duration> pause;
      try {
        HttpResponse<T> answer = follow(method, uri, body, limit);
        int status = answer.statusCode();
        String wait = answer.headers().firstValue("Retry-After").orElse("");
        boolean passes = patient && RemoteFault.isPassing(status);
        pause = LIMITS.pauseAfter(attempt, RemoteFault.of(passes, status, "", wait));
        if (pause.isEmpty()) {
          return answer;
        }
      } catch (IOException e) {
        boolean passes = patient && !(e instanceof ConnectException);
        pause = LIMITS.pauseAfter(attempt, RemoteFault.of(passes, 0, "", ""));
        if (pause.isEmpty()) {
          throw e;
        }
      }
      Thread.sleep(pause.get());
    }
  }

  /// Returns why no answer arrived; the JDK's exceptions of its HTTP client often have no message.
  public static String reason(IOException noAnswer) {
    return noAnswer.getCause() instanceof UnresolvedAddressException
        ? "unknown host"
        : Objects.requireNonNullElse(noAnswer.getMessage(), "no connection");
  }

  private <T> HttpResponse<T> follow(String method, URI from, BodyHandler<T> body, Duration limit)
      throws IOException, InterruptedException {
    URI uri = from;
    for (int i = 0; ; i++) {
      HttpRequest.Builder request =
          HttpRequest.newBuilder(uri)
              .method(method, HttpRequest.BodyPublishers.noBody())
              .header("Accept-Encoding", "identity")
              .header("User-Agent", "gantry");
      headers.of(method, uri, "").forEach(request::header);
      HttpResponse<T> answer = await(request.build(), body, limit);
      Optional<URI> target = Redirects.target(uri, answer.statusCode(), answer.headers());
      if (target.isEmpty()
          || i == Redirects.MAX
          || (method.equals("HEAD") && !home.test(target.get()))) {
        return answer;
      }
      uri = target.get();
    }
  }

  private <T> HttpResponse<T> await(HttpRequest request, BodyHandler<T> body, Duration limit)
      throws IOException, InterruptedException {
    CompletableFuture<HttpResponse<T>> sent = http.client().sendAsync(request, body);
    try {
      return sent.get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof IOException failure ? failure : new IOException(e.getCause());
    } catch (TimeoutException e) {
      throw new IOException("no answer within " + limit.toSeconds() + " s", e);
    } finally {
      boolean _ = sent.cancel(true);
    }
  }
}
