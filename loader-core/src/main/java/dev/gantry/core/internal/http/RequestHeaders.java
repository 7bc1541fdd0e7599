// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import java.io.IOException;
import java.net.URI;
import java.util.Map;

/// Gives the headers that an address needs besides a request's own headers, such as a token or a
/// signature. A request asks for them again at each address to which a redirect leads, so that no
/// header of one address is sent to another. Thread-safe.
@FunctionalInterface
public interface RequestHeaders {
  RequestHeaders NONE = (_, _, _) -> Map.of();

  /// @param range the value of the header `Range`; empty if the request has none
  /// @throws IOException if the headers cannot be made, such as when a server does not give a
  ///     token
  Map<String, String> of(String method, URI address, String range) throws IOException;
}
