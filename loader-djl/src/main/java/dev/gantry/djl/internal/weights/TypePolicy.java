// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.names.NamePattern;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// The types that floating-point tensors get. Immutable.
///
/// @param named the patterns of names with their types; the first pattern that matches a tensor's
///     name decides
/// @param others the type of all other tensors; empty if the load decides
/// @param asStored whether parameters without an array get the stored type instead of the block's
///     type
public record TypePolicy(List<Named> named, Optional<DataType> others, boolean asStored) {
  /// The type of tensors whose names match a pattern.
  public record Named(NamePattern tensors, DataType type) {}

  private static final Set<DataType> TARGETS =
      Set.of(DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64);

  public static final TypePolicy NONE = new TypePolicy(List.of(), Optional.empty(), false);

  public TypePolicy {
    named = List.copyOf(named);
  }

  public TypePolicy with(NamePattern tensors, DataType type) {
    List<Named> more = new ArrayList<>(named);
    more.add(new Named(tensors, requireTarget(type)));
    return new TypePolicy(more, others, asStored);
  }

  public TypePolicy withOthers(DataType type) {
    return new TypePolicy(named, Optional.of(requireTarget(type)), asStored);
  }

  public TypePolicy withAsStored(boolean chosen) {
    return new TypePolicy(named, others, chosen);
  }

  /// Whether no type was asked for any tensor. The record's `equals` would be linked in a process's
  /// first load, which takes milliseconds.
  public boolean isNone() {
    return named.isEmpty() && others.isEmpty() && !asStored;
  }

  /// The type that was asked for a tensor; empty if none was.
  public Optional<DataType> of(String tensor) {
    return named.stream()
        .filter(entry -> entry.tensors().matches(tensor))
        .map(Named::type)
        .findFirst()
        .or(() -> others);
  }

  private static DataType requireTarget(DataType type) {
    if (!TARGETS.contains(type)) {
      throw new MisuseException(
          "tensors can be cast to FLOAT16, BFLOAT16, FLOAT32 or FLOAT64, not to " + type.name());
    }
    return type;
  }
}
