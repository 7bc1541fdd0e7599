// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.MisuseException;
import java.net.URI;

/// The address of a service, which a setting may name.
final class ServiceAddress {
  private ServiceAddress() {}

  /// Reads an address, and takes slashes from its end.
  ///
  /// @param setting that names it, for messages
  /// @throws MisuseException if it is no address of HTTP
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
      // Refused below.
    }
    throw new MisuseException(setting + " must be an http or https address (was " + text + ")");
  }
}
