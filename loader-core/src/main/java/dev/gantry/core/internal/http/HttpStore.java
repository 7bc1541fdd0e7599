// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Files of HTTP servers that serve ranges, read by the JDK's client over HTTP/1.1. Each request under way has
/// a connection of its own. [RangeRequest] follows redirects. The JDK's system properties name the proxies. Thread-safe.
public final class HttpStore implements Store {
  /// The bounds of a request.
  ///
  /// @param connect how long it may take until a connection stands
  /// @param idle how long a server may send nothing, before the first byte of an answer or between two
  /// @param attempts how often a request is made: again after a lost connection, an answer that was cut short,
  ///     and the statuses 429, 500, 502, 503 and 504
  /// @param pause how long to wait before the second attempt; the wait before each later one is four times as long
  record Limits(Duration connect, Duration idle, int attempts, Duration pause) {
    static final Limits DEFAULT =
        new Limits(Duration.ofSeconds(10), Duration.ofSeconds(30), 4, Duration.ofMillis(200));
  }

  private final Limits limits;
  private @Nullable HttpClient client;
  private boolean closed;

  /// Makes the store for [java.util.ServiceLoader].
  public HttpStore() {
    this(Limits.DEFAULT);
  }

  HttpStore(Limits limits) {
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
    if (remote.uri().getHost() == null || remote.uri().getRawUserInfo() != null) {
      throw new MisuseException(file + " must be a URL with a host, and without a user name");
    }
    return open(remote, URI.create(remote.uri().toASCIIString()), _ -> Map.of());
  }

  /// Opens the file that `source` brings, for a store that knows its own names.
  ///
  /// @param file the file's name in messages
  /// @param headers what a request to an address needs, such as a token; asked for each address to which a redirect leads
  /// @throws TransferException if the file is not there or cannot be read
  public StoredFile open(
      Location.Remote file, URI source, Function<URI, Map<String, String>> headers) {
    return HttpFile.open(client(), limits, file, source, headers);
  }

  /// The client, which follows no redirects.
  ///
  /// @throws MisuseException if this is closed
  public synchronized HttpClient client() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
    HttpClient present = client;
    if (present == null) {
      present =
          HttpClient.newBuilder()
              .version(HttpClient.Version.HTTP_1_1)
              .followRedirects(HttpClient.Redirect.NEVER)
              .connectTimeout(limits.connect())
              .build();
      client = present;
    }
    return present;
  }

  @Override
  public synchronized void close() {
    closed = true;
    if (client != null) {
      client.shutdownNow();
      client = null;
    }
  }
}
