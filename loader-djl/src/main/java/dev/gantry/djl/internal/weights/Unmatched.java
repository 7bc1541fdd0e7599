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
          ("a match by order needs as many tensors as parameters: %s parameters have no rule"
                  + " (%s), and %s tensors have no parameter (%s)")
              .formatted(
                  free.size(),
                  Names.listed(free.keySet()),
                  unused.size(),
                  Names.listed(unused.stream().map(StoredTensor::name).toList())));
    }
    var tensor = unused.iterator();
    free.forEach((path, parameter) -> {
      StoredTensor next = tensor.next();
      if (parameter.getShape() != null && !ParameterFit.shape(parameter).equals(next.shape())) {
        throw new MisuseException(
            "a match by order would give parameter '%s' %s the tensor '%s' %s of another shape"
                .formatted(path, ParameterFit.shape(parameter), next.name(), next.shape()));
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
            ("a match by shape is ambiguous: shape %s fits the parameters %s and the tensors %s;"
                    + " add rules for them")
                .formatted(
                    shape,
                    Names.listed(rivals),
                    Names.listed(fitting.stream().map(StoredTensor::name).toList())));
      }
      if (!fitting.isEmpty()) {
        pairs.put(path, fitting.getFirst());
      }
    });
    return pairs;
  }
}
