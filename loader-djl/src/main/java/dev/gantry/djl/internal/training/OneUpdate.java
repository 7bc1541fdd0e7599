// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.training.ParameterServer;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.djl.internal.guard.TorchArrays;

/// Updates a parameter once a step, on the first device, with the mean of the devices' gradients, and
/// copies it to the others. DJL's own adds the gradients up and updates on each device, each time as a step
/// of its own, so that the devices' parameters drift apart (source: DJL 0.35.1, `LocalParameterServer`).
final class OneUpdate implements ParameterServer {
  private final Optimizer optimizer;

  OneUpdate(Optimizer optimizer) {
    this.optimizer = optimizer;
  }

  Optimizer optimizer() {
    return optimizer;
  }

  @Override
  public void init(String parameter, NDArray[] values) {}

  @Override
  public void update(String parameter, NDArray[] gradients, NDArray[] values) {
    try (NDArray mean = gradients[0].duplicate()) {
      for (int i = 1; i < gradients.length; i++) {
        try (NDArray copy = gradients[i].toDevice(mean.getDevice(), true)) {
          mean.addi(copy);
        }
      }
      mean.divi(gradients.length);
      optimizer.update(parameter, values[0], mean);
    }
    for (int i = 1; i < values.length; i++) {
      TorchArrays.copy(values[0], values[i], 0);
      TrainerParts.clearGradient(TorchArrays.torchArray(values[i]));
    }
  }

  @Override
  public void close() {}
}
