// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.djl.internal.weights.ParameterFit;
import java.util.List;
import java.util.SequencedMap;

/// The result of a load into parameters. Immutable.
///
/// @param loaded by parameter, in the block's order, the tensor that it has now; several tensors of a
///     concatenation are separated by commas. Two parameters of one tensor (tied weights) share its
///     memory if neither had an array; each that had one has a copy
/// @param missing parameters that got no tensor, which only `optPartial` allows. Those that had an
///     array keep it; the others of a block have the values of their initializers
/// @param mismatched parameters whose tensor has another shape, which only `optSkipMismatched`
///     allows, with both shapes; their values are as described for `missing`
/// @param unexpected tensors that no parameter took, in the catalogue's order; rules of
///     [ParameterNames#builder] refuse them unless `optPartial` allows that
/// @param ignored tensors that the names mark as not needed
/// @param transformed by parameter, how it was made of its tensor, such as `transpose`
/// @param cast by parameter, what its values were and are, such as `BF16 to FLOAT32`
public record LoadReport(
    SequencedMap<String, String> loaded,
    List<String> missing,
    SequencedMap<String, String> mismatched,
    List<String> unexpected,
    List<String> ignored,
    SequencedMap<String, String> transformed,
    SequencedMap<String, String> cast) {
  static LoadReport of(ParameterFit.Outcome outcome) {
    return new LoadReport(
        outcome.loaded(),
        outcome.missing(),
        outcome.mismatched(),
        outcome.unexpected(),
        outcome.ignored(),
        outcome.transformed(),
        outcome.cast());
  }
}
