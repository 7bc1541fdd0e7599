// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.MisuseException;
import java.net.URI;

/// Parses the address of a service that a setting names.
public final class ServiceAddress {
  private static final int MAX_PORT = 0xffff;

  private ServiceAddress() {}

  /// Parses an address, and removes slashes from its end.
  ///
  /// @param setting the setting that names the address, for messages
  /// @throws MisuseException if the text is not an HTTP address; the message shows no text that may
  ///     hold a password or a signature
  public static URI of(String setting, String text) {
    try {
      URI address = URI.create(text.replaceFirst("/+$", ""));
      if (namesServer(address)
          && address.getRawUserInfo() == null
          && address.getRawQuery() == null
          && address.getRawFragment() == null
          && ("http".equalsIgnoreCase(address.getScheme())
              || "https".equalsIgnoreCase(address.getScheme()))) {
        return address;
      }
    } catch (IllegalArgumentException _) {
      // The text is refused below.
    }
    boolean isSecret = text.chars().anyMatch(c -> c == '@' || c == '?' || c == '#');
    throw new MisuseException(
        setting
            + " must be an http or https address"
            + (isSecret ? " without a user name and without a query" : " (was " + text + ")"));
  }

  /// Whether an address has a host, and a port that exists or none.
  static boolean namesServer(URI address) {
    return address.getHost() != null && address.getPort() <= MAX_PORT;
  }
}
