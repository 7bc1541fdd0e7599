// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.MisuseException;
import java.net.URI;

/// Parses the address of a service that a setting names.
final class ServiceAddress {
  private ServiceAddress() {}

  /// Parses an address, and removes slashes from its end.
  ///
  /// @param setting the setting that names the address, for messages
  /// @throws MisuseException if the text is not an HTTP address
  static URI of(String setting, String text) {
    try {
      URI address = URI.create(text.replaceFirst("/+$", ""));
      if (address.getHost() != null
          && address.getRawUserInfo() == null
          && address.getRawQuery() == null
          && ("http".equals(address.getScheme()) || "https".equals(address.getScheme()))) {
        return address;
      }
    } catch (IllegalArgumentException _) {
      // The text is refused below.
    }
    throw new MisuseException(setting + " must be an http or https address (was " + text + ")");
  }
}
