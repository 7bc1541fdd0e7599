// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.index.NDIndex;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;

/// The arrays that a training on several devices has on all of them but the first. DJL's optimizers count an
/// update on each device and begin their states one after the other, so that values drift apart; running
/// means differ with the samples that a device had.
final class Replicas {
  /// The checkpoint's group of arrays that differ from the first device's.
  static final String GROUP = "replicas";

  /// How many values of two arrays are compared at a time.
  private static final long SLICE_VALUES = 4 << 20;

  private Replicas() {}

  /// Names what the devices but the first have: `device/group/name`, with the device's number among the trainer's.
  ///
  /// @param devices how many devices the training has
  /// @param parameters what a device has of each parameter, by its number
  /// @param states what a device has of each state of the optimizer
  static <T> SequencedMap<String, T> named(
      int devices,
      IntFunction<? extends Map<String, T>> parameters,
      IntFunction<? extends Map<String, T>> states) {
    SequencedMap<String, T> named = new LinkedHashMap<>();
    for (int i = 1; i < devices; i++) {
      String model = i + "/" + TrainingContents.MODEL + "/";
      String optimizer = i + "/" + TrainingContents.OPTIMIZER + "/";
      parameters.apply(i).forEach((name, each) -> named.put(model + name, each));
      states.apply(i).forEach((name, each) -> named.put(optimizer + name, each));
    }
    return named;
  }

  /// Whether all bits are the same.
  static boolean sameValues(NDArray first, NDArray other) {
    return first.getDevice().equals(other.getDevice())
        ? first.contentEquals(other)
        : sameValues(first, other, SLICE_VALUES, slice -> slice.toDevice(first.getDevice(), true));
  }

  /// Compares slice by slice, up to the first that differs: replicas that drift apart differ from their
  /// beginning on.
  ///
  /// @param copy brings a slice to the first array's device
  static boolean sameValues(NDArray first, NDArray other, long slice, UnaryOperator<NDArray> copy) {
    try (NDArray all = first.reshape(-1);
        NDArray others = other.reshape(-1)) {
      for (long at = 0; at < all.size(); at += slice) {
        NDIndex range = new NDIndex().addSliceDim(at, Math.min(all.size(), at + slice));
        try (NDArray part = all.get(range);
            NDArray otherPart = others.get(range);
            NDArray copied = copy.apply(otherPart)) {
          if (!part.contentEquals(copied)) {
            return false;
          }
        }
      }
      return true;
    }
  }
}
