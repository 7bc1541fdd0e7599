// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.MisuseException;
import java.util.function.UnaryOperator;

/// GPT-2: a decoder with learned positions and layer normalization before each part.
///
/// Input: `input_ids`, INT64 `[batch, length]`; then, if you like, `attention_mask` of that shape, 1
/// for tokens and 0 for padding; in any order if the arrays have these names. Output: `logits` `[batch, length,
/// vocabulary]`, or without a head the last hidden state `[batch, length, width]`.
///
/// The hub's files hold query, key and value as one tensor, and weights as `[inputs, outputs]`; here
/// they are apart, and as DJL has them. There is no dropout, also in training.
public final class Gpt2Block extends DecoderBlock implements CausalBlock {
  /// The sizes of a GPT-2.
  ///
  /// @param hidden the width of the feed-forward part
  /// @param scaled whether scores are divided by the square root of a head's size
  /// @param scaledByLayer whether they are also divided by the layer's number, from 1
  public record Config(
      int vocabulary,
      int width,
      int hidden,
      int layers,
      int heads,
      int maxPositions,
      double epsilon,
      UnaryOperator<NDArray> activation,
      boolean scaled,
      boolean scaledByLayer,
      LlamaBlock.Head head) {
    /// @throws MisuseException if `width` is no multiple of `heads`
    public Config {
      requireMultiple(width, heads);
    }
  }

  private final Config config;

  /// A block without values: a load or [#initialize] gives them.
  @SuppressWarnings("this-escape")
  public Gpt2Block(Config config) {
    super(layers(config), config.vocabulary(), config.maxPositions(), true, config.head());
    this.config = config;
  }

  private static Layers layers(Config config) {
    return Layers.of(
        config.layers(),
        config.width(),
        config.hidden(),
        config.heads(),
        config.epsilon(),
        config.activation());
  }

  @Override
  double scale(int layer) {
    double scale = config.scaled() ? super.scale(layer) : 1;
    return config.scaledByLayer() ? scale / (layer + 1) : scale;
  }
}
