// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.Names;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;

/// Names by table.
record NameTable(Map<String, String> tensorByParameter) implements ParameterNames {
  @Override
  public Optional<String> tensorFor(String parameterName) {
    return Optional.ofNullable(tensorByParameter.get(parameterName));
  }

  /// @throws MisuseException if an entry is for none of these parameters
  void requireAllIn(Collection<String> parameters) {
    TreeSet<String> strange = new TreeSet<>(tensorByParameter.keySet());
    strange.removeAll(parameters);
    if (!strange.isEmpty()) {
      throw new MisuseException(
          "the table of names has entries for parameters that are not there: "
              + Names.listed(strange)
              + "; the parameters are "
              + Names.listed(parameters));
    }
  }
}
