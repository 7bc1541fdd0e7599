// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Cancellation;
import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RemoteRequest;
import java.net.URI;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.http.HttpRequestBodyStream;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;

/// A request for an object, which the CRT client signs and sends. The client sends each attempt
/// once; this class repeats attempts.
abstract class S3Request extends RemoteRequest {
  private final S3Clients clients;
  private final String method;
  private final URI url;

  /// @param method the HTTP method
  /// @param subject the object, for messages; with offset and length if they matter
  /// @param url the object's URL, with a query if there is one
  S3Request(
      S3Clients clients,
      String method,
      String subject,
      URI url,
      Cancellation cancellation,
      BooleanSupplier patience) {
    super(method, subject, cancellation, clients.limits(), patience);
    this.clients = clients;
    this.method = method;
    this.url = url;
  }

  /// Makes the next attempt without sending it.
  abstract Sent newAttempt();

  /// Returns the headers of this request.
  abstract List<HttpHeader> headers();

  /// Returns the body of one attempt; null if the request has none.
  @Nullable HttpRequestBodyStream body() {
    return null;
  }

  @Override
  protected final void attempt() {
    Sent attempt = newAttempt();
    if (begins(attempt)) {
      attempt.send();
    }
  }

  private HttpRequest message() {
    HttpHeader[] all =
        Stream.concat(
                Stream.of(
                    new HttpHeader("Host", url.getRawAuthority()),
                    new HttpHeader("User-Agent", "gantry")),
                Stream.concat(clients.headers().stream(), headers().stream()))
            .toArray(HttpHeader[]::new);
    String query = url.getRawQuery();
    String path = url.getRawPath() + (query == null ? "" : "?" + query);
    return new HttpRequest(method, path, all, body());
  }

  /// One attempt of the request.
  abstract class Sent implements Attempt, S3MetaRequestResponseHandler {
    private @Nullable S3MetaRequest sent;
    private boolean stopped;
    private boolean finished;

    /// Returns the options of the attempt, without those that all requests share.
    abstract S3MetaRequestOptions options();

    /// Sends the attempt under the lock. The attempt's end and [#stop] take the same lock, so that
    /// both see the CRT's request.
    private void send() {
      RuntimeException refused;
      synchronized (this) {
        if (stopped) {
          return;
        }
        try {
          sent =
              clients.begin(
                  options()
                      .withHttpRequest(message())
                      .withEndpoint(URI.create(url.getScheme() + "://" + url.getRawAuthority()))
                      .withResponseHandler(this));
          return;
        } catch (RuntimeException e) {
          refused = e;
        }
      }
      end(this, S3Errors.of(operation(), subject(), refused));
    }

    /// Cancels under the lock, so that the request is not closed meanwhile. The call returns at
    /// once, because the CRT client cancels in the background.
    @Override
    public final synchronized void stop() {
      stopped = true;
      if (sent != null && !finished) {
        sent.cancel();
      }
    }

    /// Whether the attempt was stopped, in which case bytes that still arrive are dropped.
    final synchronized boolean isStopped() {
      return stopped;
    }

    @Override
    public final void onFinished(S3FinishedResponseContext answer) {
      S3MetaRequest over;
      synchronized (this) {
        finished = true;
        over = sent;
      }
      if (over != null) {
        over.close();
      }
      RuntimeException defect = defect();
      if (defect != null) {
        end(this, defect);
        return;
      }
      RemoteFault fault = answer.getErrorCode() == 0 ? fault() : S3Errors.fault(answer);
      if (fault == null) {
        succeed(this);
      } else {
        fail(this, fault);
      }
    }

    /// Returns the exception of this program's own code that occurred while it consumed the
    /// answer; null if there was none.
    @Nullable RuntimeException defect() {
      return null;
    }

    /// Returns the fault of an answer that the CRT client accepted; null if it has none.
    @Nullable RemoteFault fault() {
      return null;
    }
  }
}
