// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.Device;
import org.junit.jupiter.api.Test;

class StartedEngineTest {
  /// DJL chooses the device of a manager for which none is named, and keeps it in a private field.
  @Test
  void theDeviceOfAManagerWithoutADeviceIsKnown() {
    try (NDManager manager = NDManager.newBaseManager()) {
      Engine engine = StartedEngine.find().orElseThrow();
      assertThat(engine).isSameAs(manager.getEngine());
      assertThat(StartedEngine.chosenDevice()).isEqualTo(PyTorch.device(manager.getDevice()));

      PrivateField<ai.djl.Device> chosen =
          PrivateField.of(Engine.class, "defaultDevice", ai.djl.Device.class.getTypeName());
      ai.djl.Device before = chosen.get(engine);
      chosen.set(engine, ai.djl.Device.gpu(3));
      try {
        assertThat(StartedEngine.chosenDevice()).isEqualTo(new Device.Cuda(3));
      } finally {
        chosen.set(engine, before);
      }
    }
  }
}
