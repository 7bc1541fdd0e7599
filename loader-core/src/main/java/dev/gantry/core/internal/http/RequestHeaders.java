// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import java.io.IOException;
import java.net.URI;
import java.util.Map;

/// The headers that an address wants beside a request's own, such as a token or a signature. They
/// are asked for again at each address to which a redirect leads, so that no header of one
/// address goes to another. Thread-safe.
@FunctionalInterface
public interface RequestHeaders {
  RequestHeaders NONE = (_, _, _) -> Map.of();

  /// @param range the value of the header `Range`; empty without one
  /// @throws IOException if what the headers need does not come
  Map<String, String> of(String method, URI address, String range) throws IOException;
}
