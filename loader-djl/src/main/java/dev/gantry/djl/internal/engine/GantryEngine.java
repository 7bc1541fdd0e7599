// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.engine;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.SymbolBlock;
import ai.djl.pytorch.engine.PtEngine;
import ai.djl.training.GradientCollector;
import org.jspecify.annotations.Nullable;

/// DJL's PyTorch engine with models that load weights files. This engine exists because `Criteria`
/// and DJL Serving choose a model's class only by the name of the engine.
final class GantryEngine extends Engine {
  static final String NAME = "Gantry";

  /// DJL takes the engine of the smallest rank as its default.
  static final int RANK = Integer.MAX_VALUE;

  private static Engine torch() {
    return Engine.getEngine(PtEngine.ENGINE_NAME);
  }

  @Override
  public Engine getAlternativeEngine() {
    return torch();
  }

  @Override
  public String getEngineName() {
    return NAME;
  }

  @Override
  public int getRank() {
    return RANK;
  }

  @Override
  public String getVersion() {
    return torch().getVersion();
  }

  @Override
  public boolean hasCapability(String capability) {
    return torch().hasCapability(capability);
  }

  @Override
  public Model newModel(String name, @Nullable Device device) {
    return new WeightsModel(name, newBaseManager(device));
  }

  @Override
  public SymbolBlock newSymbolBlock(NDManager manager) {
    return torch().newSymbolBlock(manager);
  }

  @Override
  public NDManager newBaseManager() {
    return torch().newBaseManager();
  }

  @Override
  public NDManager newBaseManager(@Nullable Device device) {
    return torch().newBaseManager(device);
  }

  @Override
  public GradientCollector newGradientCollector() {
    return torch().newGradientCollector();
  }

  @Override
  public void setRandomSeed(int seed) {
    super.setRandomSeed(seed);
    torch().setRandomSeed(seed);
  }
}
