// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.index.NDIndex;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;

/// The arrays of a training on several devices that are not on the first device. They may differ
/// from those of the first: DJL's optimizers count an update on each device and begin their states
/// one after another, so that values drift apart; and running means depend on the samples of each
/// device.
final class Replicas {
  /// The checkpoint's group of arrays that differ from the first device's.
  static final String GROUP = "replicas";

  /// How many values of two arrays are compared at a time.
  private static final long SLICE_VALUES = 4 << 20;

  private Replicas() {}

  /// Names the arrays of all devices but the first: `device/group/name`, with the device's index
  /// among the trainer's devices.
  ///
  /// @param devices how many devices the training has
  /// @param parameters returns a device's arrays of the parameters, by the device's index
  /// @param states returns a device's arrays of the optimizer's states
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

  /// Compares slice by slice, up to the first slice that differs. Replicas that have drifted apart
  /// usually differ in the first slice.
  ///
  /// @param copy copies a slice to the first array's device
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
