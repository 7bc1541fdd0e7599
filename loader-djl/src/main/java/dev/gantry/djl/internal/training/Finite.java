// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import java.util.Map;
import java.util.Optional;

/// Finds values of a training that has gone wrong: NaN and the infinities.
public final class Finite {
  private Finite() {}

  /// The name of the first array that has such a value. Types that libtorch cannot add up are not looked
  /// at.
  public static Optional<String> firstWithout(Map<String, NDArray> arrays) {
    return arrays.entrySet().stream()
        .filter(entry -> !isFinite(entry.getValue()))
        .map(Map.Entry::getKey)
        .findFirst();
  }

  /// A sum takes no memory, and is finite only if all values are.
  private static boolean isFinite(NDArray array) {
    return switch (array.getDataType()) {
      case FLOAT32 -> {
        try (NDArray sum = array.sum()) {
          yield Float.isFinite(sum.getFloat()) || hasFiniteValues(array);
        }
      }
      case FLOAT64 -> {
        try (NDArray sum = array.sum()) {
          yield Double.isFinite(sum.getDouble()) || hasFiniteValues(array);
        }
      }
      case FLOAT16 -> hasFiniteValues(array);
      default -> true;
    };
  }

  /// Finite values may have a sum that is none.
  private static boolean hasFiniteValues(NDArray array) {
    try (NDArray nan = array.isNaN();
        NDArray infinite = array.isInfinite();
        NDArray either = nan.logicalOr(infinite);
        NDArray any = either.any()) {
      return !any.getBoolean();
    }
  }
}
