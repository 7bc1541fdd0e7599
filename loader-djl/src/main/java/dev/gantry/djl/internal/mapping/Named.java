// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.util.Pair;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.weights.BlockShapes;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Stream;

/// A parameter or a tensor.
///
/// @param shape the shape; empty for a parameter that has none yet
public record Named(String name, Optional<TensorShape> shape) {
  /// Returns the parameters of a block, each by its first path.
  ///
  /// @param inputs the shapes of the block's inputs, from which the shapes of its parameters
  ///     follow; may be empty
  /// @throws dev.gantry.core.MisuseException if the block cannot be initialised for such inputs
  public static List<Named> parameters(Block block, List<Shape> inputs) {
    if (inputs.isEmpty()) {
      return parameters(block.getParameters());
    }
    try (NDManager manager = NDManager.newBaseManager(Device.cpu());
        BlockShapes _ = BlockShapes.of(manager, block, inputs.toArray(Shape[]::new))) {
      return parameters(block.getParameters());
    }
  }

  private static List<Named> parameters(ParameterList list) {
    List<Named> parameters = new ArrayList<>();
    Set<Parameter> known = new HashSet<>();
    for (Pair<String, Parameter> pair : list) {
      if (known.add(pair.getValue())) {
        Optional<TensorShape> shape =
            Optional.ofNullable(pair.getValue().getShape())
                .map(found -> TensorShape.of(found.getShape()));
        parameters.add(new Named(pair.getKey(), shape));
      }
    }
    return parameters;
  }

  /// Returns the tensors, without those that hold the scales of other tensors.
  public static List<Named> tensors(SequencedMap<String, StoredTensor> tensors) {
    return tensors.values().stream()
        .filter(tensor -> !isScale(tensor.name(), tensors))
        .map(tensor -> new Named(tensor.name(), Optional.of(tensor.shape())))
        .toList();
  }

  private static boolean isScale(String name, SequencedMap<String, StoredTensor> tensors) {
    return Stream.of("_scale_inv", "_scale")
        .anyMatch(suffix ->
            name.endsWith(suffix)
                && tensors.containsKey(name.substring(0, name.length() - suffix.length())));
  }
}
