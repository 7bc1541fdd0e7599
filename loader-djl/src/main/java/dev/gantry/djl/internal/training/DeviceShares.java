// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDManager;
import java.util.Collections;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;

/// How many samples of the current batch each device of a training has. A batch says so when it is split, and
/// [OneUpdate] needs it for the mean of the gradients; both know the training's manager.
public final class DeviceShares {
  private static final int[] EQUAL = {};
  private static final Map<NDManager, int[]> SHARES =
      Collections.synchronizedMap(new WeakHashMap<>());

  private DeviceShares() {}

  /// @param manager the training's, from which the batch was taken
  /// @param samples of the first devices; the others have none
  public static void set(NDManager manager, int[] samples) {
    SHARES.put(manager, samples.clone());
  }

  /// The factor of each device's gradient, which is a mean over that device's samples: with these factors the
  /// sum is the mean over the batch. All factors are equal if no batch has said how it was split.
  static float[] weights(NDManager manager, int devices) {
    int[] samples = Objects.requireNonNullElse(SHARES.get(manager), EQUAL);
    long all = 0;
    for (int count : samples) {
      all += count;
    }
    float[] weights = new float[devices];
    for (int i = 0; i < devices; i++) {
      int own = i < samples.length ? samples[i] : 0;
      weights[i] = all == 0 ? 1f / devices : (float) ((double) own / all);
    }
    return weights;
  }
}
