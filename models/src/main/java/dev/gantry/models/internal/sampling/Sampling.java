// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.sampling;

/// Says how a token is drawn. The steps come in the order of its components, as in transformers.
///
/// @param penalty by which the scores of tokens that the text has are divided, or multiplied if they are negative; 1 for
///     none
/// @param temperature by which scores are divided; 0 to take the best
/// @param topK draws from so many of the highest scores, and those equal to the last; 0 for all
/// @param topP draws from the likeliest tokens that have this share together; 1 for all
/// @param minP draws from tokens that are at least this share as likely as the best; 0 for all
public record Sampling(double penalty, double temperature, int topK, double topP, double minP) {
  /// Whether the best token always follows.
  public boolean isGreedy() {
    return temperature == 0;
  }
}
