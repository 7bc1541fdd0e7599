// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Location;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;

/// A file on its way to S3. The CRT client reads it, sends a larger one as a multipart upload, retries parts,
/// and aborts the upload when it fails. It is not sent by the SDK's client, which sends `Expect:
/// 100-continue` even with an empty body, and does not understand s3proxy's answers to that.
final class S3Upload extends S3Request {
  private final Path file;
  private final long bytes;
  private final CompletableFuture<Void> done = new CompletableFuture<>();

  private S3Upload(
      S3Clients clients,
      Path file,
      long bytes,
      Location target,
      URI url,
      Cancellation cancellation) {
    super(clients, "PUT", target.toString(), url, cancellation, () -> true);
    this.file = file;
    this.bytes = bytes;
  }

  /// @param url of the object
  static CompletableFuture<Void> start(
      S3Clients clients, Path file, long bytes, Location target, URI url) {
    Cancellation cancellation = new Cancellation();
    S3Upload upload = new S3Upload(clients, file, bytes, target, url, cancellation);
    var _ =
        upload.done.whenComplete((_, _) -> {
          if (upload.done.isCancelled()) {
            cancellation.cancel();
          }
        });
    upload.start();
    return upload.done;
  }

  @Override
  Sent newAttempt() {
    return new Sent() {
      @Override
      S3MetaRequestOptions options() {
        return new S3MetaRequestOptions()
            .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.PUT_OBJECT)
            .withRequestFilePath(file);
      }
    };
  }

  @Override
  List<HttpHeader> headers() {
    return List.of(
        new HttpHeader("Content-Length", Long.toString(bytes)),
        new HttpHeader("Content-Type", "application/octet-stream"));
  }

  @Override
  protected void completed() {
    boolean _ = done.complete(null);
  }

  @Override
  protected void failed(Throwable reason) {
    boolean _ = done.completeExceptionally(reason);
  }
}
