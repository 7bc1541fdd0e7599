// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Location;
import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.spi.ReadRequest;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.s3.S3BorrowedBuffer;
import software.amazon.awssdk.crt.s3.S3BorrowedBufferDelivery;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;

/// The read of one range of an object into memory. The bytes are copied once, from the CRT
/// client's buffers to the target, as they arrive.
final class S3Range extends S3Request {
  private final String etag;
  private final ReadRequest request;

  S3Range(S3Clients clients, Location location, URI url, String etag, ReadRequest request) {
    super(
        clients,
        "GET",
        subject(location, request.offset(), request.target().byteSize()),
        url,
        request.cancellation(),
        request::mayRetry);
    this.etag = etag;
    this.request = request;
  }

  @Override
  List<HttpHeader> headers() {
    long last = request.offset() + request.target().byteSize() - 1;
    return List.of(
        new HttpHeader("Range", "bytes=" + request.offset() + "-" + last),
        new HttpHeader("If-Match", etag));
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
  Sent newAttempt() {
    return new Answer();
  }

  private final class Answer extends Sent implements S3BorrowedBufferDelivery {
    private @Nullable String fault;
    private @Nullable RuntimeException defect;
    private long received;

    @Override
    S3MetaRequestOptions options() {
      return new S3MetaRequestOptions()
          .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.GET_OBJECT);
    }

    /// @param start the offset in the object
    @Override
    public int onResponseBodyBorrowed(S3BorrowedBuffer buffer, long start, long end) {
      try (buffer) {
        take(buffer.asByteBuffer(), start);
      }
      return 0;
    }

    /// Receives bytes from a client without a pool of direct buffers.
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
      if (!isStopped()) {
        try {
          MemorySegment.copy(source, 0, request.target(), at, source.byteSize());
        } catch (RuntimeException e) {
          // The exception is stored, because the CRT client would not pass it on.
          defect = e;
          return;
        }
      }
      received += source.byteSize();
    }

    @Override
    synchronized @Nullable RuntimeException defect() {
      return defect;
    }

    @Override
    synchronized @Nullable RemoteFault fault() {
      long wanted = request.target().byteSize();
      if (fault == null && received == wanted) {
        return null;
      }
      return RemoteFault.lasting(
          0, fault != null ? fault : "the server sent " + received + " bytes instead of " + wanted);
    }
  }
}
