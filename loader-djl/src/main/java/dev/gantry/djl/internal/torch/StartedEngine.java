// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import ai.djl.engine.Engine;
import ai.djl.pytorch.engine.PtEngineProvider;
import dev.gantry.core.Device;
import java.util.Optional;

/// DJL's PyTorch engine, if the program has started it. Asking never starts it. Thread-safe.
public final class StartedEngine {
  private static final PrivateField<Engine> ENGINE =
      PrivateField.of(PtEngineProvider.class, "engine", Engine.class.getTypeName());
  private static final PrivateField<ai.djl.Device> DEFAULT_DEVICE =
      PrivateField.of(Engine.class, "defaultDevice", ai.djl.Device.class.getTypeName());

  private StartedEngine() {}

  /// Returns the device of models and managers for which the program named no device: the device
  /// on which weights that it opens will probably be loaded. Returns the host if the program has
  /// made none yet, or if this version of DJL does not tell.
  public static Device chosenDevice() {
    return find().map(StartedEngine::chosenDevice).orElse(Device.HOST);
  }

  static Optional<Engine> find() {
    return ENGINE.field() == null ? Optional.empty() : ENGINE.find(PtEngineProvider.class);
  }

  static Device chosenDevice(Engine engine) {
    return DEFAULT_DEVICE.field() == null
        ? Device.HOST
        : DEFAULT_DEVICE.find(engine).map(PyTorch::device).orElse(Device.HOST);
  }
}
