// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.sampling;

/// Says how a token is drawn. The steps are applied in the order of the record's components, as in
/// transformers.
///
/// @param penalty scores of tokens that the text already has are divided by this number, or
///     multiplied if they are negative; 1 for no penalty
/// @param temperature scores are divided by this number; 0 to take the best token
/// @param topK only this many of the highest scores, and those equal to the last of them, are
///     kept; 0 for all
/// @param topP only the likeliest tokens are kept whose probabilities add up to this number; 1 for
///     all
/// @param minP only tokens are kept whose probability is at least this fraction of the best
///     token's; 0 for all
public record Sampling(double penalty, double temperature, int topK, double topP, double minP) {
  /// Whether the best token is always taken.
  public boolean isGreedy() {
    return temperature == 0;
  }
}
