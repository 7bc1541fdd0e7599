// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Location;
import java.net.URI;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;

/// A file on its way to S3. The CRT client reads it, sends a larger one as a multipart upload, retries parts,
/// and aborts the upload when it fails. Not the SDK's client: that asks servers to say first whether to go on,
/// also where nothing follows, and answers of s3proxy to that are not understood.
final class S3Upload implements S3MetaRequestResponseHandler {
  private final Location target;
  private final CompletableFuture<Void> done = new CompletableFuture<>();

  private S3Upload(Location target) {
    this.target = target;
  }

  /// @param url of the object
  static CompletableFuture<Void> start(
      S3Clients clients, Path file, long bytes, Location target, URI url) {
    S3Upload upload = new S3Upload(target);
    HttpRequest message =
        new HttpRequest(
            "PUT",
            url.getRawPath(),
            new HttpHeader[] {
              new HttpHeader("Host", url.getRawAuthority()),
              new HttpHeader("Content-Length", Long.toString(bytes)),
              new HttpHeader("Content-Type", "application/octet-stream"),
              new HttpHeader("User-Agent", "gantry")
            },
            null);
    S3MetaRequest sent =
        clients.begin(
            new S3MetaRequestOptions()
                .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.PUT_OBJECT)
                .withHttpRequest(message)
                .withRequestFilePath(file)
                .withEndpoint(URI.create(url.getScheme() + "://" + url.getRawAuthority()))
                .withResponseHandler(upload));
    var _ =
        upload.done.whenComplete((_, failure) -> {
          if (upload.done.isCancelled()) {
            sent.cancel();
          }
          sent.close();
        });
    return upload.done;
  }

  @Override
  public void onFinished(S3FinishedResponseContext end) {
    if (end.getErrorCode() == 0) {
      done.complete(null);
    } else {
      done.completeExceptionally(S3Errors.of("PUT", target.toString(), end));
    }
  }
}
