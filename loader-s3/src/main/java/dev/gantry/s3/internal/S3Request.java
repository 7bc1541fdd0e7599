// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Cancellation;
import dev.gantry.core.internal.store.RemoteRequest;
import java.net.URI;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;

/// A download or upload of an object's bytes. It has one attempt: the CRT client itself signs, splits and
/// retries.
abstract class S3Request extends RemoteRequest
    implements RemoteRequest.Attempt, S3MetaRequestResponseHandler {
  private final S3Clients clients;
  private final URI url;
  private @Nullable S3MetaRequest sent;
  private boolean stopped;
  private boolean finished;

  /// @param url of the object
  S3Request(
      S3Clients clients, String operation, String subject, URI url, Cancellation cancellation) {
    super(operation, subject, cancellation);
    this.clients = clients;
    this.url = url;
  }

  /// The options of this request, without those that all requests have.
  abstract S3MetaRequestOptions options();

  /// The headers of this request.
  abstract List<HttpHeader> headers();

  @Override
  protected void attempt() {
    if (!begins(this)) {
      return;
    }
    S3MetaRequest made;
    try {
      made =
          clients.begin(
              options()
                  .withHttpRequest(message())
                  .withEndpoint(URI.create(url.getScheme() + "://" + url.getRawAuthority()))
                  .withResponseHandler(this));
    } catch (RuntimeException e) {
      boolean _ = end(this, S3Errors.of(operation(), subject(), e));
      return;
    }
    boolean over;
    synchronized (this) {
      sent = made;
      over = finished;
      if (stopped && !over) {
        made.cancel();
      }
    }
    if (over) {
      made.close();
    }
  }

  private HttpRequest message() {
    HttpHeader[] all =
        Stream.concat(
                Stream.of(
                    new HttpHeader("Host", url.getRawAuthority()),
                    new HttpHeader("User-Agent", "gantry")),
                headers().stream())
            .toArray(HttpHeader[]::new);
    return new HttpRequest(operation(), url.getRawPath(), all, null);
  }

  /// Cancels under the lock, so that the request is not closed meanwhile. This does not wait: the CRT client
  /// only takes note.
  @Override
  public synchronized void stop() {
    stopped = true;
    if (sent != null && !finished) {
      sent.cancel();
    }
  }

  /// Whether bytes that still come are not wanted any more.
  final synchronized boolean isStopped() {
    return stopped;
  }

  @Override
  public final void onFinished(S3FinishedResponseContext end) {
    S3MetaRequest over;
    synchronized (this) {
      finished = true;
      over = sent;
    }
    if (over != null) {
      over.close();
    }
    boolean _ = end(this, reason(end));
  }

  /// Why the request failed; null if it did not.
  @Nullable RuntimeException reason(S3FinishedResponseContext end) {
    return end.getErrorCode() == 0 ? null : S3Errors.of(operation(), subject(), end);
  }
}
