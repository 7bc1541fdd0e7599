// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.cache.CacheSettings;

/// Asks for the process's session while its cache settings are wrong, and again after they were
/// corrected.
final class SharedSessionProgram {
  private SharedSessionProgram() {}

  static void main() {
    for (int i = 0; i < 2; i++) {
      try {
        System.out.println("opened " + Session.shared());
      } catch (MisuseException e) {
        System.out.println("refused: " + e.getMessage());
      }
    }
    System.setProperty(CacheSettings.BYTES_PROPERTY, "1GB");
    Session first = Session.shared();
    System.out.println(first.equals(Session.shared()) ? "one session" : "two");
  }
}
