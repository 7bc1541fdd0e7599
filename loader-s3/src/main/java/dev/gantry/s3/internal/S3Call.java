// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Cancellation;
import dev.gantry.core.internal.objects.XmlText;
import dev.gantry.core.internal.store.RemoteFault;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequestBodyStream;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;

/// A request of S3's API with a short answer, for one step of an upload. A server may send status
/// 200 before it knows that the request will fail: the CRT client makes an error in the body of
/// such an answer a failure.
final class S3Call extends S3Request {
  /// The server's answer.
  ///
  /// @param etag the value of the header `ETag`; empty if there is none
  record Answer(String etag, String body) {
    /// Returns the text of an XML element of the body that holds only text.
    ///
    /// @return empty if the body has no such element
    String element(String name) {
      return XmlText.element(body, name);
    }
  }

  /// The source of a request's body, read anew for each attempt.
  interface Body {
    HttpRequestBodyStream open();

    /// Returns the length in bytes.
    long length();

    /// Returns a body that is in memory.
    static Body of(byte[] bytes) {
      return new Body() {
        @Override
        public HttpRequestBodyStream open() {
          return new HttpRequestBodyStream() {
            private final ByteBuffer left = ByteBuffer.wrap(bytes);

            @Override
            public boolean sendRequestBody(ByteBuffer target) {
              int count = Math.min(target.remaining(), left.remaining());
              target.put(left.slice(left.position(), count));
              left.position(left.position() + count);
              return !left.hasRemaining();
            }

            @Override
            public boolean resetPosition() {
              left.rewind();
              return true;
            }

            @Override
            public long getLength() {
              return bytes.length;
            }
          };
        }

        @Override
        public long length() {
          return bytes.length;
        }
      };
    }
  }

  private static final int MAX_ANSWER_BYTES = 1 << 20;

  private final String name;
  private final Body body;
  private final CompletableFuture<Answer> done = new CompletableFuture<>();
  private volatile Answer answer = new Answer("", "");

  private S3Call(
      S3Clients clients,
      String name,
      String method,
      String subject,
      URI url,
      Body body,
      Cancellation cancellation) {
    super(clients, method, subject, url, cancellation, () -> true);
    this.name = name;
    this.body = body;
  }

  /// Begins a request.
  ///
  /// @param name the operation's name, such as `UploadPart`
  /// @param url the URL with its query
  /// @param cancellation ends the request; it is cancelled when the result is
  /// @return completes with the answer
  static CompletableFuture<Answer> start(
      S3Clients clients,
      String name,
      String method,
      String subject,
      URI url,
      Body body,
      Cancellation cancellation) {
    S3Call call = new S3Call(clients, name, method, subject, url, body, cancellation);
    CompletableFuture<Answer> answered = call.done;
    var _ =
        answered.whenComplete((_, _) -> {
          if (answered.isCancelled()) {
            cancellation.cancel();
          }
        });
    call.start();
    return answered;
  }

  @Override
  List<HttpHeader> headers() {
    return List.of(
        new HttpHeader("Content-Length", Long.toString(body.length())),
        new HttpHeader("Content-Type", "application/octet-stream"));
  }

  @Override
  HttpRequestBodyStream body() {
    return body.open();
  }

  @Override
  protected void completed() {
    boolean _ = done.complete(answer);
  }

  @Override
  protected void failed(Throwable reason) {
    boolean _ = done.completeExceptionally(reason);
  }

  @Override
  Sent newAttempt() {
    return new Attempted();
  }

  private final class Attempted extends Sent {
    private final ByteArrayOutputStream received = new ByteArrayOutputStream();
    private String etag = "";

    @Override
    S3MetaRequestOptions options() {
      return new S3MetaRequestOptions()
          .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.DEFAULT)
          .withOperationName(name);
    }

    @Override
    public void onResponseHeaders(int status, HttpHeader[] headers) {
      etag =
          Arrays.stream(headers)
              .filter(header -> header.getName().equalsIgnoreCase("ETag"))
              .map(HttpHeader::getValue)
              .findFirst()
              .orElse("");
    }

    @Override
    public int onResponseBody(ByteBuffer bytes, long start, long end) {
      byte[] copy = new byte[Math.min(bytes.remaining(), MAX_ANSWER_BYTES - received.size())];
      bytes.get(copy);
      received.writeBytes(copy);
      return 0;
    }

    /// Keeps the answer of the attempt that the CRT client accepted.
    @Override
    @Nullable RemoteFault fault() {
      answer = new Answer(etag, received.toString(StandardCharsets.UTF_8));
      return null;
    }
  }
}
