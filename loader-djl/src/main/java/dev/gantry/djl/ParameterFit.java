// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.util.Pair;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.training.Names;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;

/// Which tensor goes into which parameter, checked: what is here can be loaded.
///
/// @param assignments a parameter with several paths is there once
/// @param missing the parameters for which there is no tensor, by path
/// @param report what a load of this will have done
record ParameterFit(
    List<Assignment> assignments, SequencedMap<String, Parameter> missing, LoadReport report) {
  /// @param path the parameter's in its block
  record Assignment(String path, Parameter parameter, StoredTensor tensor) {}

  /// @param withArray whether those whose parameters have an array are wanted, or the others
  List<Assignment> assignments(boolean withArray) {
    return assignments.stream()
        .filter(assignment -> assignment.parameter().isInitialized() == withArray)
        .toList();
  }

  /// @param partial whether parameters may lack a tensor
  /// @throws MisuseException if a parameter lacks one, a tensor does not fit its parameter, or the
  ///     names are for others
  static ParameterFit of(
      SequencedMap<String, StoredTensor> tensors,
      ParameterList parameters,
      ParameterNames names,
      boolean partial) {
    if (names instanceof NameTable table) {
      table.requireAllIn(parameters.keys());
    }
    Map<Parameter, Assignment> assignments = new LinkedHashMap<>();
    SequencedMap<String, String> loaded = new LinkedHashMap<>();
    SequencedMap<String, Parameter> missing = new LinkedHashMap<>();
    List<String> absent = new ArrayList<>();
    for (Pair<String, Parameter> pair : parameters) {
      Optional<String> name = names.tensorFor(pair.getKey());
      StoredTensor tensor = name.map(tensors::get).orElse(null);
      if (tensor == null) {
        missing.put(pair.getKey(), pair.getValue());
        name.ifPresent(absent::add);
        continue;
      }
      Assignment assignment = new Assignment(pair.getKey(), pair.getValue(), tensor);
      Assignment other = assignments.putIfAbsent(pair.getValue(), assignment);
      if (other != null && !other.tensor().equals(tensor)) {
        throw mismatch(
            assignment,
            "as '" + other.path() + "' the parameter gets '" + other.tensor().name() + "'");
      }
      loaded.put(pair.getKey(), tensor.name());
    }
    // A parameter with several paths needs a tensor under one of them.
    missing.values().removeAll(assignments.keySet());
    if (!partial && !missing.isEmpty()) {
      throw incomplete(tensors, missing, absent);
    }
    assignments.values().forEach(ParameterFit::check);
    Set<String> used = new HashSet<>(loaded.values());
    List<String> unused = tensors.keySet().stream().filter(name -> !used.contains(name)).toList();
    return new ParameterFit(
        List.copyOf(assignments.values()),
        missing,
        new LoadReport(loaded, List.copyOf(missing.keySet()), unused));
  }

  private static MisuseException incomplete(
      SequencedMap<String, StoredTensor> tensors,
      SequencedMap<String, Parameter> missing,
      List<String> absent) {
    if (missing.size() == 1 && !absent.isEmpty()) {
      // For its error, which names the nearest that are known.
      var _ = TensorSelection.names(absent).of(tensors);
    }
    String reason = absent.isEmpty() ? "" : " (the weights have no " + Names.listed(absent) + ")";
    return new MisuseException(
        "there is no tensor for "
            + Names.listed(missing.keySet())
            + reason
            + "; optPartial(true) loads a part of the parameters");
  }

  private static void check(Assignment assignment) {
    StoredTensor tensor = assignment.tensor();
    Parameter parameter = assignment.parameter();
    if (!Casts.isHeld(tensor.dtype())) {
      throw mismatch(assignment, "DJL holds no " + tensor.dtype());
    }
    checkShape(assignment);
    boolean castable = Casts.concerns(tensor);
    if (parameter.isInitialized()) {
      DataType type = parameter.getArray().getDataType();
      if (!(castable && type.isFloating())
          && !PyTorch.dataType(tensor.dtype()).equals(Optional.of(type))) {
        throw mismatch(assignment, "the parameter is of type " + type);
      }
    } else if (!castable && isFloating(parameter)) {
      throw mismatch(assignment, "the parameter is of a floating-point type");
    }
  }

  /// Only weights that are not trained can be integers.
  private static boolean isFloating(Parameter parameter) {
    return parameter.requiresGradient()
        || switch (parameter.getType()) {
          case GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR -> true;
          case WEIGHT, BIAS, OTHER -> false;
        };
  }

  private static void checkShape(Assignment assignment) {
    ai.djl.ndarray.types.Shape wanted = assignment.parameter().getShape();
    if (wanted == null) {
      return;
    }
    Shape shape = Shape.of(wanted.getShape());
    Shape given = assignment.tensor().shape();
    if (given.equals(shape)) {
      return;
    }
    boolean transposed =
        given.rank() == 2
            && shape.rank() == 2
            && given.dimension(0) == shape.dimension(1)
            && given.dimension(1) == shape.dimension(0);
    throw mismatch(
        assignment,
        "the parameter has shape " + shape + (transposed ? "; the tensor looks transposed" : ""));
  }

  private static MisuseException mismatch(Assignment assignment, String reason) {
    StoredTensor tensor = assignment.tensor();
    return new MisuseException(
        "tensor '"
            + tensor.name()
            + "' ("
            + tensor.dtype()
            + " "
            + tensor.shape()
            + ") does not fit parameter '"
            + assignment.path()
            + "': "
            + reason);
  }
}
