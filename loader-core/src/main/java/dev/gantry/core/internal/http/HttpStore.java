// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Files of HTTP servers that serve ranges, read over HTTP/1.1. Each request under way has a
/// [Connection] and a thread of its own: the JDK's client takes seven times as much CPU time,
/// since it allocates buffers and copies every byte that it receives. [RangeRequest] follows
/// redirects. The JDK's system properties name the proxies. Thread-safe.
public final class HttpStore implements Store {
  /// The longest time to establish a connection.
  static final Duration CONNECT = Duration.ofSeconds(10);

  private final RetryLimits limits;
  private final Connections connections = new Connections();
  private @Nullable HttpClient client;

  /// Makes the store for [java.util.ServiceLoader].
  public HttpStore() {
    this(RetryLimits.DEFAULT);
  }

  HttpStore(RetryLimits limits) {
    this.limits = limits;
  }

  @Override
  public Set<String> schemes() {
    return Set.of("http", "https");
  }

  @Override
  public StoredFile open(Location file, CachePolicy policy) {
    if (!(file instanceof Location.Remote remote)) {
      throw new MisuseException(file + " must be an http or https URL");
    }
    if (!ServiceAddress.namesServer(remote.uri()) || remote.uri().getRawUserInfo() != null) {
      throw new MisuseException(
          file + " must be a URL with a host, a port up to 65535 or none, and without a user name");
    }
    requireOpen();
    URI source = URI.create(remote.uri().toASCIIString());
    return HttpFile.open(this, limits, remote, source, RequestHeaders.NONE, false);
  }

  /// Opens the file at the address `source`, for a store that has its own names for files.
  ///
  /// @param file the file's name in messages
  /// @param fixed whether the address names bytes that never change, so that the server need not
  ///     state their version
  /// @throws TransferException if the file is not there or cannot be read
  public StoredFile open(Location.Remote file, URI source, RequestHeaders headers, boolean fixed) {
    requireOpen();
    return HttpFile.open(this, limits, file, source, headers, fixed);
  }

  Connections connections() {
    return connections;
  }

  /// The JDK's client for requests that are not for ranges. It follows no redirects.
  ///
  /// @throws MisuseException if this is closed
  public synchronized HttpClient client() {
    requireOpen();
    HttpClient made = client;
    if (made == null) {
      made =
          HttpClient.newBuilder()
              .version(HttpClient.Version.HTTP_1_1)
              .followRedirects(HttpClient.Redirect.NEVER)
              .connectTimeout(CONNECT)
              .build();
      client = made;
    }
    return made;
  }

  private void requireOpen() {
    if (isClosed()) {
      throw new MisuseException("this session is closed");
    }
  }

  boolean isClosed() {
    return connections.isClosed();
  }

  @Override
  public synchronized void close() {
    connections.close();
    if (client != null) {
      client.shutdownNow();
    }
  }
}
