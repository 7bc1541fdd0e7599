// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.types.DataType;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.IntStream;

/// Finds values of a training that has gone wrong: NaN and the infinities.
public final class Finite {
  /// Only arrays of Gantry's, which DJL can sum and cast, call themselves BFLOAT16.
  private static final Set<DataType> SUMMED =
      EnumSet.of(DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64);

  private Finite() {}

  /// The name of the first array that has NaN or an infinity. Arrays of types that libtorch cannot
  /// sum are skipped.
  public static Optional<String> firstWithout(SequencedMap<String, NDArray> arrays) {
    List<Map.Entry<String, NDArray>> summed =
        arrays.entrySet().stream()
            .filter(entry -> SUMMED.contains(entry.getValue().getDataType()))
            .toList();
    double[] sums = sums(summed.stream().map(Map.Entry::getValue).toList());
    return IntStream.range(0, sums.length)
        .filter(i -> !Double.isFinite(sums[i]) && !hasFiniteValues(summed.get(i).getValue()))
        .mapToObj(i -> summed.get(i).getKey())
        .findFirst();
  }

  /// The sum of each array. A sum takes no memory, and it is finite only if all values are. All
  /// sums of a device are copied together, since each copy waits for the device.
  private static double[] sums(Collection<NDArray> arrays) {
    if (arrays.isEmpty()) {
      return new double[0];
    }
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      NDList sums = new NDList(arrays.size());
      arrays.forEach(array -> sums.add(array.sum().toType(DataType.FLOAT64, true)));
      return NDArrays.stack(sums).toDevice(Device.cpu(), true).toDoubleArray();
    }
  }

  /// Whether all values are finite. Each value is tested, because the sum of finite values may
  /// overflow.
  private static boolean hasFiniteValues(NDArray array) {
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      NDArray any = array.isNaN().logicalOr(array.isInfinite()).any();
      // DJL keeps the copy that it makes to read a value of a GPU until the manager closes.
      return !any.toDevice(Device.cpu(), true).getBoolean();
    }
  }
}
