// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.Location;
import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.Arena;
import java.net.URI;
import java.net.http.HttpResponse.ResponseInfo;
import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A file behind a URL. Every answer is checked against the version that the first answer stated.
final class HttpFile implements StoredFile {
  private static final int REQUESTS_AT_ONCE = 128;

  final HttpStore store;
  final RetryLimits limits;
  final Location.Remote location;
  final URI original;
  final RequestHeaders headers;
  private final boolean fixed;

  /// The version that the first answer stated; null before that.
  private volatile @Nullable FileVersion version;

  private volatile Optional<Instant> modified = Optional.empty();
  private volatile URI resolved;

  private HttpFile(
      HttpStore store,
      RetryLimits limits,
      Location.Remote location,
      URI source,
      RequestHeaders headers,
      boolean fixed) {
    this.store = store;
    this.limits = limits;
    this.location = location;
    this.original = source;
    this.headers = headers;
    this.fixed = fixed;
    this.resolved = original;
  }

  /// Opens a file by a request for its first byte, since some servers do not answer `HEAD`.
  ///
  /// @param source the address of the file
  /// @param headers gives the headers that a request to an address needs besides the range
  /// @param fixed whether the address names bytes that never change
  static HttpFile open(
      HttpStore store,
      RetryLimits limits,
      Location.Remote location,
      URI source,
      RequestHeaders headers,
      boolean fixed) {
    HttpFile file = new HttpFile(store, limits, location, source, headers, fixed);
    try (SourceFile opening = new SourceFile(location, file)) {
      boolean _ = opening.read(Arena.ofAuto().allocate(1), 0, 1, false);
    }
    return file;
  }

  /// Returns the validator of the version that every range must have; empty before the first
  /// answer.
  String validator() {
    FileVersion known = version;
    return known == null ? "" : known.validator();
  }

  /// Checks that an answer has the range of this file's version. The first answer sets the
  /// version.
  void check(ResponseInfo answer, long offset, long length) throws RemoteFault {
    FileVersion known = version;
    if (known == null) {
      known = FileVersion.of(answer, fixed);
      modified = FileVersion.modified(answer);
      version = known;
    }
    if (known.size() == 0) {
      throw RemoteFault.lasting(answer.statusCode(), "the file is empty");
    }
    known.check(answer, offset, length);
  }

  /// Whether the server has answered a request for this file.
  boolean isKnown() {
    return version != null;
  }

  boolean isEmpty() {
    FileVersion known = version;
    return known != null && known.size() == 0;
  }

  /// Returns the address that the last redirects led to.
  URI resolved() {
    return resolved;
  }

  /// Records the address that served a range.
  void resolved(URI from) {
    resolved = from;
  }

  private FileVersion known() {
    return Objects.requireNonNull(version);
  }

  @Override
  public long size() {
    return known().size();
  }

  @Override
  public Object identity() {
    return known();
  }

  @Override
  public int requestsAtOnce() {
    return REQUESTS_AT_ONCE;
  }

  /// Returns an empty version if the server sends only a date: a file can change twice within one
  /// second, the resolution of such dates.
  @Override
  public String version() {
    return validator().startsWith("\"") ? known().toString() : "";
  }

  @Override
  public Optional<Instant> modified() {
    return modified;
  }

  @Override
  public void read(ReadRequest request) {
    if (request.target().byteSize() == 0) {
      request.completed();
      return;
    }
    RangeRequest asked = new RangeRequest(this, request);
    request.whenSlow(asked::hedge);
    asked.start();
  }

  @Override
  public void close() {}
}
