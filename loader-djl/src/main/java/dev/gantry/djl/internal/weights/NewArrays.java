// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Parameter;
import ai.djl.training.initializer.Initializer;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.Guards;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Makes arrays for parameters that have none. Arrays that were not given to their parameters are closed with
/// this.
public final class NewArrays implements AutoCloseable {
  private final NDManager manager;
  private final Map<Parameter, NDArray> arrays = new LinkedHashMap<>();

  NewArrays(NDManager manager) {
    this.manager = manager;
  }

  /// An array with arbitrary values, for [#add].
  NDArray create(TensorShape shape, DataType type, Optional<Device> device) {
    ArrayKind kind = new ArrayKind(Optional.of(PyTorch.dtype(type)), shape);
    return TorchArrays.createOwned(manager, kind, device.orElseGet(manager::getDevice));
  }

  /// @param parameters the first one gets the array, the others views of it: each has a gradient of
  ///     its own, and can be closed
  void add(List<Parameter> parameters, NDArray array) {
    arrays.put(parameters.getFirst(), array);
    parameters.stream()
        .skip(1)
        .forEach(parameter -> arrays.put(parameter, array.reshape(array.getShape())));
  }

  /// Gives all elements of a parameter one value.
  ///
  /// @param type of the new array, if it has none
  void fill(Parameter parameter, float value, DataType type) {
    boolean live = parameter.isInitialized();
    NDArray target =
        live ? parameter.getArray() : create(ParameterFit.shape(parameter), type, Optional.empty());
    if (!live) {
      arrays.put(parameter, target);
    }
    try (NDArray one = manager.create(value);
        NDArray all = one.broadcast(target.getShape())) {
      TorchArrays.copy(all, target, 0);
    }
  }

  /// Adds an array with the values that DJL would initialise the parameter with.
  ///
  /// @param path the parameter's, for the message
  void addInitial(String path, Parameter parameter, DataType type) {
    Initializer initializer = parameter.getInitializer();
    if (initializer == null) {
      throw new MisuseException("parameter '" + path + "' has neither a tensor nor an initializer");
    }
    // Makes FLOAT32 first: DJL's native code would end the process if it were to make BF16.
    NDArray array = initializer.initialize(manager, parameter.getShape(), DataType.FLOAT32);
    if (type != DataType.FLOAT32) {
      try (NDArray floats = Guards.guard(array)) {
        array = floats.toType(type, true);
      }
    }
    arrays.put(parameter, array);
  }

  void give() {
    arrays.forEach((parameter, array) -> give(manager, parameter, array));
    arrays.clear();
  }

  /// Gives a parameter that has no array this one.
  public static void give(NDManager manager, Parameter parameter, NDArray array) {
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
