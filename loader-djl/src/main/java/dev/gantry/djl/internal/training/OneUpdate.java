// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.ParameterServer;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.djl.internal.ndarray.TorchArrays;

/// Updates a parameter once a step, on the first device, with the mean of the devices' gradients, each
/// weighted by its device's samples, and copies it to the others. DJL's own parameter server adds the
/// gradients up and updates each device as a step of its own, so that the devices' parameters drift apart
/// (source: DJL 0.35.1, `LocalParameterServer`).
final class OneUpdate implements ParameterServer {
  private final Optimizer optimizer;
  private final NDManager manager;

  /// @param manager the training's
  OneUpdate(Optimizer optimizer, NDManager manager) {
    this.optimizer = optimizer;
    this.manager = manager;
  }

  Optimizer optimizer() {
    return optimizer;
  }

  @Override
  public void init(String parameter, NDArray[] values) {}

  @Override
  public void update(String parameter, NDArray[] gradients, NDArray[] values) {
    float[] weights = DeviceShares.weights(manager, gradients.length);
    try (NDArray mean = gradients[0].mul(weights[0])) {
      for (int i = 1; i < gradients.length; i++) {
        // A device without samples still has the gradient of an earlier batch.
        if (weights[i] > 0) {
          try (NDArray copy = gradients[i].toDevice(mean.getDevice(), true)) {
            mean.addi(copy.muli(weights[i]));
          }
        }
      }
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
