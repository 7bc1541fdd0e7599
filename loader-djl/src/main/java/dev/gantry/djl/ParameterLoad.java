// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.ParameterList;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.guard.TorchArrays;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;

/// One load of tensors into parameters. Everything is checked and loaded before the first parameter
/// changes.
final class ParameterLoad {
  private final GantrySession session;
  private final NDManager manager;
  private final LoadOptions options;
  private final SequencedMap<String, StoredTensor> tensors;

  /// @throws MisuseException if the options select tensors
  ParameterLoad(
      GantrySession session,
      NDManager manager,
      LoadOptions options,
      SequencedMap<String, StoredTensor> tensors) {
    if (options.selection().isPresent()) {
      throw new MisuseException(
          "optSelection is set; a load into parameters takes the tensors that the names choose");
    }
    this.session = session;
    this.manager = manager;
    this.options = options;
    this.tensors = tensors;
  }

  /// Afterwards all of the block's parameters have an array, and it can predict.
  ///
  /// @param inputShapes not used if the block is initialised
  LoadReport into(Block block, ParameterNames names, Shape... inputShapes) {
    DataType type = options.cast().orElse(DataType.FLOAT32);
    try (BlockShapes _ = BlockShapes.of(manager, block, inputShapes);
        NewArrays arrays = new NewArrays(manager)) {
      ParameterFit fit = ParameterFit.of(tensors, block.getParameters(), names, options.partial());
      fit.missing()
          .forEach((path, parameter) -> {
            if (!parameter.isInitialized()) {
              arrays.addInitial(path, parameter, type);
            }
          });
      load(fit, arrays, Optional.of(type));
      return fit.report();
    }
  }

  /// Parameters that have neither an array nor a tensor stay without an array.
  LoadReport into(ParameterList parameters, ParameterNames names) {
    ParameterFit fit = ParameterFit.of(tensors, parameters, names, options.partial());
    try (NewArrays arrays = new NewArrays(manager)) {
      load(fit, arrays, options.cast());
    }
    return fit.report();
  }

  /// @param arrays takes those for the parameters that have none
  /// @param cast what those become
  private void load(ParameterFit fit, NewArrays arrays, Optional<DataType> cast) {
    List<ParameterFit.Assignment> without = fit.assignments(false);
    List<ParameterFit.Assignment> with = fit.assignments(true);
    Map<String, List<NDArray>> targets = new HashMap<>();
    with.forEach(assignment ->
        targets
            .computeIfAbsent(assignment.tensor().name(), _ -> new ArrayList<>())
            .add(assignment.parameter().getArray()));
    TensorLoad load = new TensorLoad(session, manager, options);
    arrays.add(without, load.arrays(tensorsOf(without), cast));
    load.eachPart(
        tensorsOf(with),
        (tensor, rows, first) ->
            targets
                .getOrDefault(tensor, List.of())
                .forEach(target -> TorchArrays.copy(rows, target, first)),
        load::report);
    arrays.give();
  }

  /// In the catalogue's order, each once.
  private List<StoredTensor> tensorsOf(List<ParameterFit.Assignment> assignments) {
    Set<String> names = new HashSet<>();
    assignments.forEach(assignment -> names.add(assignment.tensor().name()));
    return tensors.values().stream().filter(tensor -> names.contains(tensor.name())).toList();
  }
}
