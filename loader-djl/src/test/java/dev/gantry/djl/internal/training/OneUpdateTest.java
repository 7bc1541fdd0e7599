// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.GradientCollector;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The arithmetic of an update. Arrays of one device stand for arrays of several devices.
class OneUpdateTest {
  /// Returns the change of a parameter by a step of length 1, if the gradient on device `i` is `10
  /// * i`. A device without samples has what an earlier batch left, which may be no number.
  private static float step(int devices, int... samples) {
    try (NDManager manager = NDManager.newBaseManager()) {
      if (samples.length > 0) {
        OneUpdate.share(manager, samples);
      }
      NDArray[] gradients =
          IntStream.range(0, devices)
              .mapToObj(i ->
                  manager.create(
                      new float[] {
                        samples.length == 0 || (i < samples.length && samples[i] > 0)
                            ? 10 * i
                            : Float.NaN
                      }))
              .toArray(NDArray[]::new);
      NDArray[] values =
          IntStream.range(0, devices)
              .mapToObj(_ -> manager.zeros(new Shape(1)))
              .toArray(NDArray[]::new);
      Optimizer sgd = Optimizer.sgd().setLearningRateTracker(Tracker.fixed(1)).build();
      try (OneUpdate update = new OneUpdate(sgd, manager)) {
        update.update("weight", gradients, values);
      }
      float[] first = values[0].toFloatArray();
      assertThat(values).allSatisfy(each -> assertThat(each.toFloatArray()).isEqualTo(first));
      return -first[0];
    }
  }

  @Test
  void partsThatAreEqualCountAlike() {
    assertThat(step(4)).isEqualTo(15);
    assertThat(step(4, 3, 3, 3, 3)).isEqualTo(15);
  }

  @Test
  void nineSamplesOnEightDevicesCountOnceEach() {
    int[] samples = new int[8];
    Arrays.fill(samples, 1);
    samples[0] = 2;
    // The two samples of the first device have the gradient 0.
    assertThat(step(8, samples)).isCloseTo(280 / 9f, within(1e-5f));
  }

  @Test
  void devicesWithoutSamplesDoNotCount() {
    assertThat(step(8, 1, 1, 1)).isCloseTo(10, within(1e-5f));
    assertThat(step(3, 1, 1, 0)).isCloseTo(5, within(1e-5f));
  }

  /// The gradients of the next batch would be added to those of this one.
  @Test
  void noDeviceKeepsItsGradient() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray[] values = {manager.ones(new Shape(1)), manager.ones(new Shape(1))};
      for (NDArray value : values) {
        value.setRequiresGradient(true);
        try (GradientCollector collector = Engine.getEngine("PyTorch").newGradientCollector()) {
          collector.backward(value.mul(3).sum());
        }
      }
      NDArray[] gradients = {values[0].getGradient(), values[1].getGradient()};
      assertThat(gradients[1].toFloatArray()).containsExactly(3);
      Optimizer sgd = Optimizer.sgd().setLearningRateTracker(Tracker.fixed(1)).build();
      try (OneUpdate update = new OneUpdate(sgd, manager)) {
        update.update("weight", gradients, values);
      }
      assertThat(values[1].toFloatArray()).containsExactly(-2);
      assertThat(values[1].getGradient().toFloatArray()).containsExactly(0);
    }
  }
}
