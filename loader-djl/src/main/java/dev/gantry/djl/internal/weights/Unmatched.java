// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.nn.Parameter;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.names.Names;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Pairs parameters that no rule matches with tensors that no rule uses.
final class Unmatched {
  private Unmatched() {}

  static SequencedMap<String, StoredTensor> byOrder(
      SequencedMap<String, Parameter> free, List<StoredTensor> unused) {
    SequencedMap<String, StoredTensor> pairs = new LinkedHashMap<>();
    if (unused.size() != free.size()) {
      throw new MisuseException(
          "by order, there must be as many tensors as parameters: "
              + free.size()
              + " parameters have no rule ("
              + Names.listed(free.keySet())
              + "), and "
              + unused.size()
              + " tensors no use ("
              + Names.listed(unused.stream().map(StoredTensor::name).toList())
              + ")");
    }
    var tensor = unused.iterator();
    free.forEach((path, parameter) -> {
      StoredTensor next = tensor.next();
      if (parameter.getShape() != null && !ParameterFit.shape(parameter).equals(next.shape())) {
        throw new MisuseException(
            "by order, '"
                + path
                + "' "
                + ParameterFit.shape(parameter)
                + " would get tensor '"
                + next.name()
                + "' "
                + next.shape()
                + ", whose shape is another");
      }
      pairs.put(path, next);
    });
    return pairs;
  }

  static SequencedMap<String, StoredTensor> byShape(
      SequencedMap<String, Parameter> free, List<StoredTensor> unused) {
    SequencedMap<String, StoredTensor> pairs = new LinkedHashMap<>();
    Map<TensorShape, List<StoredTensor>> byShape = new HashMap<>();
    unused.forEach(
        tensor -> byShape.computeIfAbsent(tensor.shape(), _ -> new ArrayList<>()).add(tensor));
    Map<TensorShape, List<String>> paths = new HashMap<>();
    free.forEach((path, parameter) -> {
      if (parameter.getShape() != null) {
        paths.computeIfAbsent(ParameterFit.shape(parameter), _ -> new ArrayList<>()).add(path);
      }
    });
    free.forEach((path, parameter) -> {
      if (parameter.getShape() == null) {
        return;
      }
      TensorShape shape = ParameterFit.shape(parameter);
      List<StoredTensor> fitting = byShape.getOrDefault(shape, List.of());
      List<String> rivals = paths.getOrDefault(shape, List.of());
      if (fitting.size() > 1 || (rivals.size() > 1 && !fitting.isEmpty())) {
        throw new MisuseException(
            "shape "
                + shape
                + " does not say which is which: parameters "
                + Names.listed(rivals)
                + ", tensors "
                + Names.listed(fitting.stream().map(StoredTensor::name).toList())
                + "; give them rules");
      }
      if (!fitting.isEmpty()) {
        pairs.put(path, fitting.getFirst());
      }
    });
    return pairs;
  }
}
