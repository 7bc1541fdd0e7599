// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.objects.ObjectName;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import java.net.URI;
import java.time.Instant;
import java.util.Optional;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;

/// An object in the version that was opened. Every request names the version's ETag, so that a
/// server that holds another version refuses it.
final class S3File implements StoredFile {
  private static final int REQUESTS_AT_ONCE = 256;

  /// The object's ETag and size in bytes, as the server gave them.
  private record Version(String etag, long size) {
    /// The version as messages show it.
    @Override
    public String toString() {
      return size + " bytes, version " + etag;
    }
  }

  private final S3Clients clients;
  private final Location location;
  private final URI url;
  private final Version version;
  private final Optional<Instant> modified;

  private S3File(
      S3Clients clients, Location location, URI url, Version version, Optional<Instant> modified) {
    this.clients = clients;
    this.location = location;
    this.url = url;
    this.version = version;
    this.modified = modified;
  }

  static S3File open(S3Clients clients, Location location, ObjectName name) {
    HeadObjectResponse head = clients.head(location, name);
    if (head.eTag() == null || head.contentLength() == null) {
      throw new TransferException(
          "HEAD",
          location.toString(),
          new Failure.Remote(
              0, "the server sends no ETag or no length, so a change would go unnoticed"));
    }
    Version version = new Version(head.eTag(), head.contentLength());
    return new S3File(
        clients, location, clients.url(name), version, Optional.ofNullable(head.lastModified()));
  }

  @Override
  public long size() {
    return version.size();
  }

  @Override
  public Object identity() {
    return version;
  }

  /// The version includes the URL, because another endpoint may have another object of the same
  /// name.
  @Override
  public String version() {
    return version + " at " + url;
  }

  @Override
  public Optional<Instant> modified() {
    return modified;
  }

  @Override
  public int requestsAtOnce() {
    return REQUESTS_AT_ONCE;
  }

  @Override
  public void read(ReadRequest request) {
    if (request.target().byteSize() == 0) {
      request.completed();
      return;
    }
    S3Range asked = new S3Range(clients, location, url, version.etag(), request);
    request.whenSlow(asked::hedge);
    asked.start();
  }

  @Override
  public void close() {}
}
