// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import dev.gantry.djl.internal.names.NamePattern;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The types that floating-point tensors become. Immutable.
///
/// @param named the first pattern that a tensor's name matches decides
/// @param others what the others become; empty if the load decides
/// @param asStored whether parameters without an array get the stored type rather than the block's
public record TypePolicy(List<Named> named, Optional<DataType> others, boolean asStored) {
  /// The type of tensors whose names match a pattern.
  public record Named(NamePattern tensors, DataType type) {}

  public static final TypePolicy NONE = new TypePolicy(List.of(), Optional.empty(), false);

  public TypePolicy {
    named = List.copyOf(named);
  }

  public TypePolicy with(NamePattern tensors, DataType type) {
    List<Named> more = new ArrayList<>(named);
    more.add(new Named(tensors, type));
    return new TypePolicy(more, others, asStored);
  }

  public TypePolicy withOthers(DataType type) {
    return new TypePolicy(named, Optional.of(type), asStored);
  }

  public TypePolicy withAsStored(boolean chosen) {
    return new TypePolicy(named, others, chosen);
  }

  /// The type that was asked for, if any.
  public Optional<DataType> of(String tensor) {
    return named.stream()
        .filter(entry -> entry.tensors().matches(tensor))
        .map(Named::type)
        .findFirst()
        .or(() -> others);
  }
}
