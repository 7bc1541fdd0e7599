// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import java.util.HashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;

/// Pairs tensors with parameters, as far as their shapes and names leave no doubt.
///
/// @param matches the pairs, in the order of the parameters
/// @param ambiguous parameters without a certain tensor, each with its candidate tensors, the
///     likeliest first: several are equally likely, or the only one is unlikely
/// @param missing parameters that no tensor fits
/// @param unused tensors in no pair; some may be candidates of ambiguous parameters
public record BlockMap(
    List<Match> matches,
    SequencedMap<Family, List<Family>> ambiguous,
    List<Family> missing,
    List<Family> unused) {
  /// A family of parameters and its family of tensors, paired member by member.
  ///
  /// @param transposed whether each tensor is its parameter's transpose
  public record Match(Family parameters, Family tensors, boolean transposed, Reason reason) {}

  /// Says why a match was made.
  public enum Reason {
    /// No other tensor and no other parameter has the shape.
    SHAPE,
    /// The names are more alike than those of any other pair with this shape.
    NAME
  }

  /// Returns the unused tensors that are candidates of no parameter.
  public List<Family> withoutCandidate() {
    Set<Family> candidates = new HashSet<>();
    ambiguous.values().forEach(candidates::addAll);
    return Family.of(
        unused.stream()
            .filter(family -> !candidates.contains(family))
            .flatMap(family -> family.members().stream())
            .map(Family.Member::named)
            .toList());
  }

  public static BlockMap of(List<Named> parameters, List<Named> tensors) {
    return new Matching(parameters, tensors).map();
  }
}
