// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Location;
import dev.gantry.core.internal.http.Refusal.Kind;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.Arena;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpResponse.ResponseInfo;
import java.time.Instant;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/// A file behind a URL. Every answer is checked against the version that the first answer stated.
final class HttpFile implements StoredFile {
  private static final int REQUESTS_AT_ONCE = 16;

  /// The statuses by which a server says that the address to which a redirect led has expired.
  private static final Set<Integer> EXPIRED = Set.of(401, 403, 404, 410);

  private final HttpClient client;
  private final HttpStore.Limits limits;
  private final Location.Remote location;
  private final URI original;
  private final FileVersion version;
  private final Optional<Instant> modified;

  /// The address that the last redirects led to.
  private volatile URI resolved;

  private HttpFile(
      HttpClient client,
      HttpStore.Limits limits,
      Location.Remote location,
      FileVersion version,
      Optional<Instant> modified,
      URI resolved) {
    this.client = client;
    this.limits = limits;
    this.location = location;
    this.original = uri(location);
    this.version = version;
    this.modified = modified;
    this.resolved = resolved;
  }

  /// Opens a file by a request for its first byte, since some servers do not answer `HEAD`.
  static HttpFile open(HttpClient client, HttpStore.Limits limits, Location.Remote location) {
    Opening opening = new Opening(client, limits, location);
    opening.start();
    return opening.await();
  }

  private static URI uri(Location.Remote location) {
    return URI.create(location.uri().toASCIIString());
  }

  @Override
  public long size() {
    return version.size();
  }

  @Override
  public Object identity() {
    return version;
  }

  @Override
  public int requestsAtOnce() {
    return REQUESTS_AT_ONCE;
  }

  /// Returns an empty version if the server sends a date only: dates are exact to a second, in which a file can change.
  @Override
  public String version() {
    return version.validator().startsWith("\"") ? version.toString() : "";
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
    new Reading(request).start();
  }

  @Override
  public void close() {}

  /// One read of the open file.
  private final class Reading extends RangeRequest {
    private boolean resolvedAgain;

    Reading(ReadRequest request) {
      super(HttpFile.this.client, HttpFile.this.limits, HttpFile.this.location, request);
    }

    @Override
    URI uri() {
      return resolvedAgain ? original : resolved;
    }

    @Override
    String ifRange() {
      return version.validator();
    }

    @Override
    void check(ResponseInfo answer) throws Refusal {
      version.check(answer, request.offset(), request.target().byteSize());
    }

    @Override
    boolean triesAnotherPlace(Refusal refusal) {
      boolean again =
          EXPIRED.contains(refusal.status()) && !resolvedAgain && !resolved.equals(original);
      resolvedAgain |= again;
      return again;
    }

    @Override
    void arrived(URI from) {
      resolved = from;
    }
  }

  /// The first request, which learns the file's version.
  private static final class Opening extends RangeRequest {
    private final URI uri;
    private final CompletableFuture<HttpFile> opened;
    private volatile @Nullable FileVersion version;
    private volatile Optional<Instant> modified = Optional.empty();

    Opening(HttpClient client, HttpStore.Limits limits, Location.Remote location) {
      this(client, limits, location, new CompletableFuture<>());
    }

    private Opening(
        HttpClient client,
        HttpStore.Limits limits,
        Location.Remote location,
        CompletableFuture<HttpFile> opened) {
      super(client, limits, location, new FirstByte(opened));
      this.uri = HttpFile.uri(location);
      this.opened = opened;
    }

    @Override
    URI uri() {
      return uri;
    }

    @Override
    String ifRange() {
      return "";
    }

    @Override
    void check(ResponseInfo answer) throws Refusal {
      FileVersion found = FileVersion.of(answer);
      version = found;
      modified = FileVersion.modified(answer);
      if (found.size() == 0) {
        throw new Refusal(Kind.EMPTY_FILE, answer.statusCode(), "");
      }
      found.check(answer, 0, 1);
    }

    @Override
    boolean triesAnotherPlace(Refusal refusal) {
      return false;
    }

    @Override
    void arrived(URI from) {
      FileVersion found = version;
      if (found != null) {
        opened.complete(new HttpFile(client, limits, location, found, modified, from));
      }
    }

    HttpFile await() {
      boolean interrupted = false;
      try {
        while (true) {
          try {
            return opened.get();
          } catch (InterruptedException _) {
            interrupted = true;
            request.cancellation().cancel();
          } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException reason
                ? reason
                : new CompletionException(e.getCause());
          }
        }
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  private static final class FirstByte extends ReadRequest {
    private final CompletableFuture<HttpFile> opened;

    /// @param opened fails if the request fails
    FirstByte(CompletableFuture<HttpFile> opened) {
      super(Arena.ofAuto().allocate(1), 0, new Cancellation());
      this.opened = opened;
    }

    @Override
    public void completed() {}

    @Override
    public void failed(Throwable reason) {
      opened.completeExceptionally(reason);
    }
  }
}
