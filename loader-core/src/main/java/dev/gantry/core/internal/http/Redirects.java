// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import java.net.URI;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse.ResponseInfo;
import java.util.Optional;
import java.util.Set;

/// Reads the address to which an answer redirects.
public final class Redirects {
  /// The most redirects that one request follows.
  public static final int MAX = 5;

  private static final Set<Integer> STATUSES = Set.of(301, 302, 303, 307, 308);

  private Redirects() {}

  static Optional<URI> target(URI from, ResponseInfo answer) {
    return target(from, answer.statusCode(), answer.headers());
  }

  /// Returns the address to which an answer redirects: empty if the answer does not redirect, does
  /// not name an HTTP server, or leads from `https` to `http`.
  public static Optional<URI> target(URI from, int status, HttpHeaders headers) {
    if (!STATUSES.contains(status)) {
      return Optional.empty();
    }
    return headers
        .firstValue("Location")
        .flatMap(address -> HeaderValues.address(from, address))
        .filter(ServiceAddress::namesServer)
        .filter(target ->
            "https".equalsIgnoreCase(target.getScheme()) || (isPlain(target) && isPlain(from)));
  }

  /// Whether two addresses have the same scheme, host and port.
  public static boolean isSameServer(URI one, URI other) {
    return one.getScheme().equalsIgnoreCase(other.getScheme())
        && one.getHost().equalsIgnoreCase(other.getHost())
        && one.getPort() == other.getPort();
  }

  private static boolean isPlain(URI address) {
    return "http".equalsIgnoreCase(address.getScheme());
  }
}
