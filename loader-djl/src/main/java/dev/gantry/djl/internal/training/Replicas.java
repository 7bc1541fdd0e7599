// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.index.NDIndex;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The arrays that a training on several devices has on all of them but the first. DJL's optimizers count an
/// update on each device and begin their states one after the other, so that values drift apart; running
/// means differ with the samples that a device had.
final class Replicas {
  /// The checkpoint's group of arrays that differ from the first device's.
  static final String GROUP = "replicas";

  private static final Pattern KEY =
      Pattern.compile(
          "([1-9]\\d{0,5})/("
              + TrainingContents.MODEL
              + "|"
              + TrainingContents.OPTIMIZER
              + ")/(.+)",
          Pattern.DOTALL);

  /// How many values of two arrays are compared at a time.
  private static final long SLICE_VALUES = 4 << 20;

  private Replicas() {}

  /// @param device its number among the trainer's, from 1
  /// @param group [TrainingContents#MODEL] or [TrainingContents#OPTIMIZER]
  /// @param name of the array in the group
  record Key(int device, String group, String name) {
    /// Reads a key; empty if `text` is none.
    static Optional<Key> parse(String text) {
      Matcher matcher = KEY.matcher(text);
      return matcher.matches()
          ? Optional.of(
              new Key(Integer.parseInt(matcher.group(1)), matcher.group(2), matcher.group(3)))
          : Optional.empty();
    }

    String text() {
      return device + "/" + group + "/" + name;
    }
  }

  /// Adds those arrays of a device whose bits differ from the first device's.
  ///
  /// @param first by name
  /// @param others of another device, by name
  static void addDifferent(
      int device,
      String group,
      Map<String, NDArray> first,
      Map<String, NDArray> others,
      SequencedMap<String, NDArray> to) {
    others.forEach((name, other) -> {
      if (!sameValues(Objects.requireNonNull(first.get(name)), other)) {
        to.put(new Key(device, group, name).text(), other);
      }
    });
  }

  private static boolean sameValues(NDArray first, NDArray other) {
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

  /// Why a saved array is no replica of what the first device has; empty if it is.
  ///
  /// @param kinds of the first device's, by group and name
  static Optional<String> misfit(
      String text,
      ArrayKind kind,
      int devices,
      Map<String, SequencedMap<String, ArrayKind>> kinds) {
    Optional<Key> key = Key.parse(text);
    if (key.isEmpty() || key.get().device() >= devices) {
      return Optional.of("'" + text + "' is no replica on one of " + devices + " devices");
    }
    ArrayKind first =
        kinds.getOrDefault(key.get().group(), new LinkedHashMap<>()).get(key.get().name());
    return kind.equals(first)
        ? Optional.empty()
        : Optional.of("'" + text + "' is " + kind + ", and the first device's is " + first);
  }
}
