// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.names;

import dev.gantry.core.MisuseException;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// The names of the tensors of some weights, and those that they have by aliases. Immutable.
public final class TensorNames {
  private final Map<String, String> namesByAlias = new HashMap<>();
  private final Map<String, Set<String>> aliasesByName = new HashMap<>();

  /// @throws MisuseException if two tensors have one alias
  public TensorNames(Collection<String> stored, NameRules rules) {
    for (String name : stored) {
      Set<String> others = new LinkedHashSet<>(Set.of(name));
      // An alias may lead to another one, as from a prefix to an old name.
      for (int step = 0; step < rules.aliases().size(); step++) {
        for (String known : List.copyOf(others)) {
          rules.aliases().forEach(alias -> alias.of(known).ifPresent(others::add));
        }
      }
      others.remove(name);
      aliasesByName.put(name, others);
      for (String other : others) {
        String first = namesByAlias.putIfAbsent(other, name);
        if (first != null) {
          throw new MisuseException(
              "tensors '" + first + "' and '" + name + "' both count as '" + other + "'");
        }
      }
    }
  }

  /// The stored name of the tensor that a rule calls `name`. A tensor of that name itself goes before one
  /// that has it as an alias.
  public Optional<String> find(String name) {
    return aliasesByName.containsKey(name)
        ? Optional.of(name)
        : Optional.ofNullable(namesByAlias.get(name));
  }

  /// The other names of a stored tensor.
  public Set<String> aliases(String name) {
    return aliasesByName.getOrDefault(name, Set.of());
  }
}
