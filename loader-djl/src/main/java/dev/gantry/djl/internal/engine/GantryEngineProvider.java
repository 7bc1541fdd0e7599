// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.engine;

import ai.djl.engine.Engine;
import ai.djl.engine.EngineProvider;
import dev.gantry.formats.internal.weights.Rehearsal;

/// Lets DJL's service loader find the [GantryEngine]. It never becomes the default engine.
public final class GantryEngineProvider implements EngineProvider {
  /// DJL makes this when the program starts DJL. Loading libtorch then takes one thread longer than
  /// the rehearsal of a load takes another.
  public GantryEngineProvider() {
    Rehearsal.begin();
  }

  @Override
  public String getEngineName() {
    return GantryEngine.NAME;
  }

  @Override
  public int getEngineRank() {
    return GantryEngine.RANK;
  }

  @Override
  public Engine getEngine() {
    return Holder.ENGINE;
  }

  private static final class Holder {
    static final Engine ENGINE = new GantryEngine();
  }
}
