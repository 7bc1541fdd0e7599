// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import java.util.Map;
import java.util.Optional;

/// Which tensor fills which parameter of a block. DJL names parameters by their place in the block
/// (`01Linear_weight`), weights files by the names of the layers (`fc1.weight`), so you supply the
/// mapping.
@FunctionalInterface
public interface ParameterNames {
  /// The tensor for the parameter of this name, as `Block.getParameters()` spells it; empty if
  /// there is none, which a load refuses unless it may be partial.
  Optional<String> tensorFor(String parameterName);

  /// The tensors have the parameters' own names.
  static ParameterNames same() {
    return Optional::of;
  }

  /// By table, from parameter to tensor. A load refuses a table with an entry for a parameter that
  /// it does not have.
  ///
  /// @throws MisuseException if the table is empty
  static ParameterNames of(Map<String, String> tensorByParameter) {
    MisuseException.requireGiven("tensorByParameter", tensorByParameter);
    if (tensorByParameter.isEmpty()) {
      throw new MisuseException("the table of names is empty; it must name a tensor or more");
    }
    return new NameTable(Map.copyOf(tensorByParameter));
  }
}
