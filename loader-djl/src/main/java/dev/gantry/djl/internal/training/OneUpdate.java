// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.ParameterServer;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import java.util.Collections;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;
import java.util.stream.IntStream;

/// Updates a parameter once in a step, on the first device, with the mean of the devices'
/// gradients, each weighted by its device's samples. Then copies the parameter to the other
/// devices. DJL's own parameter server sums the gradients and updates each device as a separate
/// step, so that the devices' parameters drift apart (source: DJL 0.35.1, `LocalParameterServer`).
///
/// @param manager the training's
public record OneUpdate(Optimizer optimizer, NDManager manager) implements ParameterServer {
  private static final int[] EQUAL = {};

  /// How many samples of the current batch each device has, by the training's manager. A batch
  /// calls [#share] when it is split.
  private static final Map<NDManager, int[]> SHARES =
      Collections.synchronizedMap(new WeakHashMap<>());

  @Override
  public void init(String parameter, NDArray[] values) {}

  @Override
  public void update(String parameter, NDArray[] gradients, NDArray[] values) {
    float[] weights = weights(manager, gradients.length);
    try (NDArray mean = gradients[0].mul(weights[0])) {
      for (int i = 1; i < gradients.length; i++) {
        // A device without samples is skipped, since its gradient is that of an earlier batch.
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

  /// Notes how a batch was split.
  ///
  /// @param manager the training's manager, from which the batch was taken
  /// @param samples the numbers of samples of the first devices; later devices have none
  public static void share(NDManager manager, int[] samples) {
    SHARES.put(manager, samples.clone());
  }

  /// The factor of each device's gradient, which is a mean over that device's samples: with these
  /// factors the sum is the mean over the batch. All factors are equal if [#share] was not called
  /// for the training.
  private static float[] weights(NDManager manager, int devices) {
    int[] samples = Objects.requireNonNullElse(SHARES.get(manager), EQUAL);
    long all = IntStream.of(samples).asLongStream().sum();
    float[] weights = new float[devices];
    for (int i = 0; i < devices; i++) {
      int own = i < samples.length ? samples[i] : 0;
      weights[i] = all == 0 ? 1f / devices : (float) ((double) own / all);
    }
    return weights;
  }

  @Override
  public void close() {}
}
