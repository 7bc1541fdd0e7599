// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Session;

/// Opens sessions for [Session#open] and [Session#shared].
public final class GantrySessions implements Session.Provider {
  @Override
  public Session open() {
    return GantrySession.open();
  }

  @Override
  public Session open(CuFileConfig settings) {
    return GantrySession.open(settings);
  }

  @Override
  public Session shared() {
    return GantrySession.shared();
  }
}
