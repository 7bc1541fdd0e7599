// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import java.util.HashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;

/// Pairs tensors with parameters, as far as shapes and names say it without doubt.
///
/// @param matches in the order of the parameters
/// @param ambiguous parameters for which several tensors are equally likely, or one is unlikely, and
///     these, the likeliest first
/// @param missing parameters for which there is no tensor
/// @param unused tensors that no match has; some may be candidates of ambiguous parameters
public record BlockMap(
    List<Match> matches,
    SequencedMap<Family, List<Family>> ambiguous,
    List<Family> missing,
    List<Family> unused) {
  /// A family of parameters and the family of tensors that they are, member by member.
  ///
  /// @param transposed whether each tensor is its parameter's transpose
  public record Match(Family parameters, Family tensors, boolean transposed, Reason reason) {}

  /// Says why a match was made.
  public enum Reason {
    /// No other tensor and no other parameter has the shape.
    SHAPE,
    /// The names are most alike among those with the shape.
    NAME
  }

  /// Unused tensors that are no candidates.
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
