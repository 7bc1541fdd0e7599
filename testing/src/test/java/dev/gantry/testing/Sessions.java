// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;

/// Sessions for the tests of other modules.
public final class Sessions {
  private Sessions() {}

  /// Opens a session that makes its file calls through `calls`.
  public static GantrySession over(FileCalls calls) {
    return GantrySession.open(calls);
  }
}
