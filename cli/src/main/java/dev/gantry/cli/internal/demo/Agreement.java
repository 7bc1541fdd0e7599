// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.Device;
import java.util.List;
import java.util.Locale;

/// How closely two trainings of one seed must agree. On the CPU bit for bit. On a GPU they differ by
/// themselves: cuDNN adds up in an order that changes from run to run, which moved the loss of one
/// step by 2e-7 (measured on an H200), and each step begins with what the one before left.
///
/// @param most the largest difference of two values that are equal
public record Agreement(float most) {
  private static final Agreement OF_BITS = new Agreement(0);
  private static final Agreement ON_A_GPU = new Agreement(0.02f);

  public static Agreement on(Device device) {
    return device.isGpu() ? ON_A_GPU : OF_BITS;
  }

  boolean holds(List<Float> some, List<Float> others) {
    if (some.size() != others.size()) {
      return false;
    }
    for (int i = 0; i < some.size(); i++) {
      if (!holds(some.get(i), others.get(i))) {
        return false;
      }
    }
    return true;
  }

  private boolean holds(float one, float other) {
    return Float.floatToRawIntBits(one) == Float.floatToRawIntBits(other)
        || (most > 0 && Math.abs(one - other) <= most);
  }

  @Override
  public String toString() {
    return most == 0 ? "bit for bit" : String.format(Locale.ROOT, "to within %.2f", most);
  }
}
