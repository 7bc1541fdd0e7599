package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.training.initializer.Initializer;
import ai.djl.util.Pair;
import dev.gantry.core.Gantry;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.djl.internal.PyTorch;
import dev.gantry.djl.internal.TorchArrays;
import dev.gantry.formats.safetensors.TensorInfo;
import dev.gantry.formats.safetensors.TensorSelection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Consumer;

/// One load of tensors into parameters. Everything is checked and loaded before the first parameter
/// changes.
final class ParameterLoad {
  private record Assignment(String parameterName, Parameter parameter, TensorInfo tensor) {}

  private final NDManager manager;
  private final TensorLoad tensorLoad;

  ParameterLoad(Gantry session, NDManager manager, LoadOptions options) {
    this.manager = manager;
    this.tensorLoad = new TensorLoad(session, manager, options);
  }

  void load(
      SequencedMap<String, TensorInfo> tensors, ParameterList parameters, ParameterNames names) {
    load(tensors, parameters, names, _ -> {});
  }

  /// @param check sees what was loaded before any parameter changes; what it throws ends the load
  void load(
      SequencedMap<String, TensorInfo> tensors,
      ParameterList parameters,
      ParameterNames names,
      Consumer<NDList> check) {
    List<Assignment> assignments = assignments(tensors, parameters, names);
    Set<String> wanted = new LinkedHashSet<>();
    assignments.forEach(assignment -> wanted.add(assignment.tensor().name()));
    NDList loaded = tensorLoad.load(TensorSelection.names(wanted).of(tensors));
    // By identity: DJL's arrays are equal where their values are.
    Set<NDArray> handedOver = Collections.newSetFromMap(new IdentityHashMap<>());
    try {
      check.accept(loaded);
      Map<String, NDArray> byName = new HashMap<>();
      loaded.forEach(array -> byName.put(array.getName(), array));
      for (Assignment assignment : assignments) {
        NDArray array = byName.get(assignment.tensor().name());
        if (array == null) {
          throw new IllegalStateException("not loaded: " + assignment.tensor().name());
        }
        assign(assignment, array, handedOver);
      }
    } finally {
      loaded.stream().filter(array -> !handedOver.contains(array)).forEach(NDArray::close);
    }
  }

  private List<Assignment> assignments(
      SequencedMap<String, TensorInfo> tensors, ParameterList parameters, ParameterNames names) {
    List<Assignment> assignments = new ArrayList<>();
    for (Pair<String, Parameter> pair : parameters) {
      names
          .tensorFor(pair.getKey())
          .ifPresent(name -> {
            // For its error, which names the nearest that are known.
            TensorInfo tensor =
                TensorSelection.names(List.of(name)).of(tensors).firstEntry().getValue();
            Assignment assignment = new Assignment(pair.getKey(), pair.getValue(), tensor);
            check(assignment);
            assignments.add(assignment);
          });
    }
    return assignments;
  }

  private static void check(Assignment assignment) {
    TensorInfo tensor = assignment.tensor();
    if (!Casts.isHeld(tensor.dtype())) {
      throw mismatch(assignment, "DJL holds no " + tensor.dtype());
    }
    ai.djl.ndarray.types.Shape shape = assignment.parameter().getShape();
    if (shape != null && !Shape.of(shape.getShape()).equals(tensor.shape())) {
      throw mismatch(assignment, "the parameter has shape " + shape);
    }
    if (assignment.parameter().isInitialized()) {
      DataType type = assignment.parameter().getArray().getDataType();
      boolean castable = type.isFloating() && Casts.concerns(tensor);
      if (!castable && !PyTorch.dataType(tensor.dtype()).equals(Optional.of(type))) {
        throw mismatch(assignment, "the parameter is of type " + type);
      }
    }
  }

  private static MisuseException mismatch(Assignment assignment, String reason) {
    TensorInfo tensor = assignment.tensor();
    return new MisuseException(
        "tensor '"
            + tensor.name()
            + "' ("
            + tensor.dtype()
            + " "
            + tensor.shape()
            + ") does not fit parameter '"
            + assignment.parameterName()
            + "': "
            + reason);
  }

  private void assign(Assignment assignment, NDArray array, Set<NDArray> handedOver) {
    Parameter parameter = assignment.parameter();
    if (parameter.isInitialized()) {
      TorchArrays.copy(array, parameter.getArray());
      return;
    }
    // Two parameters may share a tensor; the first takes the array, the second a view of it.
    NDArray own = handedOver.add(array) ? array : array.reshape(array.getShape());
    if (parameter.getShape() == null) {
      parameter.setArray(own);
      return;
    }
    // Its shape is set, so DJL takes the array from nobody but the initializer. One that makes an
    // array of the tensor's type would end the process on BF16.
    Initializer before = parameter.getInitializer();
    parameter.setInitializer((_, _, _) -> own);
    try {
      parameter.initialize(manager, own.getDataType());
    } finally {
      parameter.setInitializer(before);
    }
  }
}
