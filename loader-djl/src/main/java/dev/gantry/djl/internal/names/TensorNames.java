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

/// The stored names of some tensors, and their aliases. Immutable.
public final class TensorNames {
  private final Map<String, String> namesByAlias = new HashMap<>();
  private final Map<String, Set<String>> aliasesByName = new HashMap<>();

  /// @throws MisuseException if two tensors have the same alias
  public TensorNames(Collection<String> stored, NameRules rules) {
    for (String name : stored) {
      Set<String> others = new LinkedHashSet<>(Set.of(name));
      // The name that an alias gives may have an alias itself: for example, one removes a prefix,
      // the next replaces an old name.
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

  /// Returns the stored name of the tensor that a rule calls `name`. A tensor that is stored under
  /// this name takes precedence over a tensor that has it as an alias.
  public Optional<String> find(String name) {
    return aliasesByName.containsKey(name)
        ? Optional.of(name)
        : Optional.ofNullable(namesByAlias.get(name));
  }

  /// Returns the aliases of a stored tensor.
  public Set<String> aliases(String name) {
    return aliasesByName.getOrDefault(name, Set.of());
  }
}
