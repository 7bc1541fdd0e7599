// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Files of HTTP servers that serve ranges, by the JDK's client over HTTP/1.1: each request under
/// way has a connection of its own. Redirects are followed, but not from `https` to `http`. Proxies
/// are those of the JDK's system properties.
public final class HttpStore implements Store {
  /// What bounds a request.
  ///
  /// @param connect until a connection stands
  /// @param idle between two bytes of an answer, and before the first one
  /// @param attempts at one request: it is made again after a lost connection, an answer that was
  ///     cut short, and the statuses 429, 500, 502, 503 and 504
  /// @param pause before the second attempt; before each later one four times as long
  record Limits(Duration connect, Duration idle, int attempts, Duration pause) {
    static final Limits DEFAULT =
        new Limits(Duration.ofSeconds(10), Duration.ofSeconds(30), 4, Duration.ofMillis(200));
  }

  private final Limits limits;
  private @Nullable HttpClient client;
  private boolean closed;

  /// For [java.util.ServiceLoader].
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
    return HttpFile.open(client(), limits, remote);
  }

  private synchronized HttpClient client() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
    HttpClient present = client;
    if (present == null) {
      present =
          HttpClient.newBuilder()
              .version(HttpClient.Version.HTTP_1_1)
              .followRedirects(HttpClient.Redirect.NORMAL)
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
