// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Parameter;
import ai.djl.training.initializer.Initializer;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.guard.GantryNDArray;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/// Arrays for parameters that have none. Those that were not given to their parameters go when this
/// is closed.
final class NewArrays implements AutoCloseable {
  private final NDManager manager;
  private final Map<Parameter, NDArray> arrays = new LinkedHashMap<>();

  NewArrays(NDManager manager) {
    this.manager = manager;
  }

  /// @param loaded a tensor's array is for the first parameter that wants it; others get views of
  ///     it: each has a gradient of its own, and can be closed
  void add(List<ParameterFit.Assignment> assignments, NDList loaded) {
    Map<String, NDArray> byTensor = new HashMap<>();
    loaded.forEach(array -> byTensor.put(array.getName(), array));
    Set<String> taken = new HashSet<>();
    for (ParameterFit.Assignment assignment : assignments) {
      String tensor = assignment.tensor().name();
      NDArray array = Objects.requireNonNull(byTensor.get(tensor), tensor);
      arrays.put(
          assignment.parameter(), taken.add(tensor) ? array : array.reshape(array.getShape()));
    }
  }

  /// Adds one with the values that DJL would begin with.
  ///
  /// @param path the parameter's, for the message
  void addInitial(String path, Parameter parameter, DataType type) {
    Initializer initializer = parameter.getInitializer();
    if (initializer == null) {
      throw new MisuseException("parameter '" + path + "' has neither a tensor nor an initializer");
    }
    // DJL's native code ends the process if it is to make BF16.
    NDArray array = initializer.initialize(manager, parameter.getShape(), DataType.FLOAT32);
    if (type != DataType.FLOAT32) {
      try (NDArray floats = GantryNDArray.guard(array)) {
        array = floats.toType(type, true);
      }
    }
    arrays.put(parameter, array);
  }

  void give() {
    arrays.forEach(this::give);
    arrays.clear();
  }

  private void give(Parameter parameter, NDArray array) {
    if (parameter.getShape() == null) {
      parameter.setArray(array);
      return;
    }
    // Its shape is set, so DJL takes an array only from its initializer.
    Initializer before = parameter.getInitializer();
    parameter.setInitializer((_, _, _) -> array);
    try {
      parameter.initialize(manager, array.getDataType());
    } finally {
      parameter.setInitializer(before);
    }
  }

  @Override
  public void close() {
    arrays.values().forEach(NDArray::close);
  }
}
