// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import java.util.List;

/// Says what follows a model's last layer.
enum Head {
  /// Outputs the last hidden state `[batch, length, width]`.
  NONE,
  /// Outputs the last hidden state, and `tanh` of a dense layer of the first token's state, `[batch, size]`.
  POOLER,
  /// Outputs a score of each token of the vocabulary, `[batch, length, size]`, by the embedding's weights.
  TIED,
  /// Outputs the same scores by weights that belong to the head.
  OWN,
  /// Outputs a score of each label, `[batch, size]`, by what a pooler makes of the first token's state.
  SEQUENCE,
  /// Outputs a score of each label, `[batch, size]`, by the first token's state itself.
  FIRST,
  /// Outputs a score of each label for each token, `[batch, length, size]`.
  TOKENS;

  /// The hub's names of the outputs.
  List<String> outputs() {
    return switch (this) {
      case NONE -> List.of("last_hidden_state");
      case POOLER -> List.of("last_hidden_state", "pooler_output");
      case TIED, OWN, SEQUENCE, FIRST, TOKENS -> List.of("logits");
    };
  }

  boolean classifies() {
    return switch (this) {
      case SEQUENCE, FIRST, TOKENS -> true;
      case NONE, POOLER, TIED, OWN -> false;
    };
  }
}
