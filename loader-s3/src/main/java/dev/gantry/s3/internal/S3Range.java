// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.ReadRequest;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.s3.S3BorrowedBuffer;
import software.amazon.awssdk.crt.s3.S3BorrowedBufferDelivery;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;

/// One range of an object on its way to memory. The CRT client signs, splits and retries; its buffers
/// are copied to the target as they come, which is the only copy. The target is not touched after
/// [#onFinished].
final class S3Range implements S3MetaRequestResponseHandler, S3BorrowedBufferDelivery {
  private final S3Clients clients;
  private final Location location;
  private final URI url;
  private final String etag;
  private final ReadRequest request;

  private Runnable forget = () -> {};
  private @Nullable S3MetaRequest sent;
  private @Nullable String fault;
  private @Nullable RuntimeException defect;
  private long received;
  private boolean cancelled;
  private boolean ended;

  S3Range(S3Clients clients, Location location, URI url, String etag, ReadRequest request) {
    this.clients = clients;
    this.location = location;
    this.url = url;
    this.etag = etag;
    this.request = request;
  }

  void start() {
    Runnable registered = request.cancellation().whenCancelled(this::cancel);
    synchronized (this) {
      forget = registered;
    }
    S3MetaRequest made;
    try {
      made =
          clients.begin(
              new S3MetaRequestOptions()
                  .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.GET_OBJECT)
                  .withHttpRequest(message())
                  .withEndpoint(endpoint())
                  .withResponseHandler(this));
    } catch (RuntimeException e) {
      registered.run();
      request.failed(S3Errors.of("GET", subject(), e));
      return;
    }
    boolean over;
    synchronized (this) {
      sent = made;
      over = ended;
      if (cancelled && !over) {
        made.cancel();
      }
    }
    if (over) {
      made.close();
    }
  }

  private HttpRequest message() {
    long offset = request.offset();
    long last = offset + request.target().byteSize() - 1;
    return new HttpRequest(
        "GET",
        url.getRawPath(),
        new HttpHeader[] {
          new HttpHeader("Host", url.getRawAuthority()),
          new HttpHeader("Range", "bytes=" + offset + "-" + last),
          new HttpHeader("If-Match", etag),
          new HttpHeader("User-Agent", "gantry")
        },
        null);
  }

  private URI endpoint() {
    return URI.create(url.getScheme() + "://" + url.getRawAuthority());
  }

  /// Under the lock, so that the request is not closed meanwhile. The CRT client only takes note of it.
  private synchronized void cancel() {
    cancelled = true;
    if (sent != null && !ended) {
      sent.cancel();
    }
  }

  /// @param start offset in the object
  @Override
  public int onResponseBodyBorrowed(S3BorrowedBuffer buffer, long start, long end) {
    try (buffer) {
      take(buffer.asByteBuffer(), start);
    }
    return 0;
  }

  /// For clients without a pool of direct buffers.
  @Override
  public int onResponseBody(ByteBuffer bytes, long start, long end) {
    take(bytes, start);
    return 0;
  }

  private synchronized void take(ByteBuffer bytes, long start) {
    MemorySegment source = MemorySegment.ofBuffer(bytes);
    long at = start - request.offset();
    if (at != received || source.byteSize() > request.target().byteSize() - at) {
      fault = "the server sent " + source.byteSize() + " bytes at offset " + start;
      return;
    }
    if (!cancelled) {
      try {
        MemorySegment.copy(source, 0, request.target(), at, source.byteSize());
      } catch (RuntimeException e) {
        // The CRT's client would not tell.
        defect = e;
        return;
      }
    }
    received += source.byteSize();
  }

  @Override
  public void onFinished(S3FinishedResponseContext end) {
    S3MetaRequest finished;
    Runnable forgotten;
    RuntimeException failure;
    synchronized (this) {
      ended = true;
      finished = sent;
      forgotten = forget;
      failure = failure(end);
    }
    forgotten.run();
    if (finished != null) {
      finished.close();
    }
    if (failure == null) {
      request.completed();
    } else {
      request.failed(failure);
    }
  }

  private @Nullable RuntimeException failure(S3FinishedResponseContext end) {
    if (defect != null) {
      return defect;
    }
    if (cancelled) {
      return S3Errors.cancelled("GET", subject());
    }
    if (end.getErrorCode() != 0) {
      return S3Errors.of("GET", subject(), end);
    }
    if (fault != null) {
      return refused(fault);
    }
    if (received != request.target().byteSize()) {
      return refused(
          "the server sent " + received + " bytes instead of " + request.target().byteSize());
    }
    return null;
  }

  private TransferException refused(String reason) {
    return new TransferException("GET", subject(), new Failure.Remote(0, reason));
  }

  private String subject() {
    return location + " offset " + request.offset() + " length " + request.target().byteSize();
  }
}
