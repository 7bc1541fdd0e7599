// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import org.junit.jupiter.api.Test;

class ReplicasTest {
  /// Compares 10 values with others in slices of 4 values, and returns how many slices were
  /// copied.
  private static int copies(NDManager manager, int different) {
    float[] values = new float[10];
    float[] others = values.clone();
    if (different >= 0) {
      others[different] = 1;
    }
    int[] copies = new int[1];
    try (NDArray first = manager.create(values, new Shape(2, 5));
        NDArray other = manager.create(others, new Shape(2, 5))) {
      boolean same =
          Replicas.sameValues(
              first,
              other,
              4,
              slice -> {
                copies[0]++;
                return slice.duplicate();
              });
      assertThat(same).isEqualTo(different < 0);
    }
    return copies[0];
  }

  @Test
  void replicasThatDifferAreCopiedUpToTheFirstDifference() {
    try (NDManager manager = NDManager.newBaseManager()) {
      assertThat(copies(manager, 1)).isEqualTo(1);
      assertThat(copies(manager, 4)).isEqualTo(2);
      assertThat(copies(manager, 9)).isEqualTo(3);
      assertThat(copies(manager, -1)).isEqualTo(3);
      assertThat(manager.getManagedArrays()).isEmpty();
    }
  }
}
