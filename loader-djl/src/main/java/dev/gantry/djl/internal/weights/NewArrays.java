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
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.Guards;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Makes arrays for parameters that have none. [#close] closes the arrays that were not given to
/// their parameters.
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

  /// @param parameters tied parameters. The first gets the array, and each other gets a view of
  ///     it, so that every parameter has a gradient of its own and can be closed
  void add(List<Parameter> parameters, NDArray array) {
    arrays.put(parameters.getFirst(), array);
    parameters.stream()
        .skip(1)
        .forEach(parameter -> arrays.put(parameter, array.reshape(array.getShape())));
  }

  /// Gives all elements of a parameter one value.
  ///
  /// @param type the type of the new array, if the parameter has no array
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
  /// @param path the parameter's path, for the message
  void addInitial(String path, Parameter parameter, DataType type) {
    Initializer initializer = parameter.getInitializer();
    if (initializer == null) {
      throw new MisuseException("parameter '" + path + "' has neither a tensor nor an initializer");
    }
    // The array is made as FLOAT32 and then cast, because DJL's native code ends the process if it
    // has to make BF16.
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

  /// Gives an array to a parameter that has none.
  public static void give(NDManager manager, Parameter parameter, NDArray array) {
    if (parameter.getShape() == null) {
      parameter.setArray(array);
      return;
    }
    // If a parameter's shape is set, DJL takes an array only from the parameter's initializer.
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
    Cleanup.forEach(arrays.values(), NDArray::close);
  }
}
