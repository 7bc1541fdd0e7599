// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.formats.TensorTransform;
import dev.gantry.formats.spi.StoredTensor;
import java.util.List;
import java.util.SequencedMap;

/// Says which tensors make which parameter: the rules applied to one block and one catalogue. It depends on
/// names alone; [ParameterFit] checks shapes and types.
///
/// @param fills by path. A parameter with several paths has one fill
/// @param missing the parameters without a fill, by path
/// @param ignored tensors that only [NameRules#ignored] names
/// @param unexpected tensors that nothing names
record ParameterPlan(
    SequencedMap<String, Fill> fills,
    SequencedMap<String, Parameter> missing,
    List<String> ignored,
    List<String> unexpected) {
  /// Says what a parameter's value is made of.
  sealed interface Fill {
    Parameter parameter();
  }

  /// Tensors, one behind the other along an axis; usually one.
  ///
  /// @param rule for messages
  record Tensors(
      Parameter parameter,
      List<StoredTensor> tensors,
      int axis,
      List<TensorTransform> transforms,
      String rule)
      implements Fill {
    /// Whether the values of the parameters are the same.
    boolean sameAs(Tensors other) {
      return tensors.equals(other.tensors)
          && axis == other.axis
          && transforms.equals(other.transforms);
    }

    List<String> names() {
      return tensors.stream().map(StoredTensor::name).toList();
    }
  }

  /// One value for all elements.
  record Constant(Parameter parameter, float value) implements Fill {}

  /// @throws MisuseException if rules contradict each other, or, unless `partial`, a parameter has no
  ///     fill or a tensor no use
  static ParameterPlan of(
      SequencedMap<String, StoredTensor> tensors,
      ParameterList parameters,
      NameRules rules,
      Scales scales,
      boolean partial) {
    return new PlanMaker(tensors, parameters, rules, scales).make(partial);
  }
}
