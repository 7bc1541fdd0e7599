// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MisuseException;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/// Llama 1 to 3: a decoder with grouped-query attention, rotary embedding, RMSNorm and SwiGLU.
///
/// Input: `input_ids`, INT64 `[batch, length]`; then, if you like, `attention_mask` of that shape, 1
/// for tokens and 0 for padding; in any order if the arrays have these names. Output: `logits` `[batch, length,
/// vocabulary]`, or without a head the last hidden state `[batch, length, width]`.
///
/// Parameters: `tokens_weight`, `layer{i}_query_weight` and so on, `norm_gamma`, `head_weight`.
/// They may be FLOAT32, FLOAT16 or BFLOAT16. There is no dropout, also in training.
public final class LlamaBlock extends DecoderBlock implements CausalBlock {
  /// The sizes of a Llama.
  ///
  /// @param hidden the width of the feed-forward part
  /// @param groups how many heads there are for keys and values; each serves `heads / groups` queries
  /// @param headSize even
  /// @param epsilon of RMSNorm
  /// @param activation of the gate
  public record Config(
      int vocabulary,
      int width,
      int hidden,
      int layers,
      int heads,
      int groups,
      int headSize,
      int maxPositions,
      double epsilon,
      Rotation rotation,
      UnaryOperator<NDArray> activation,
      boolean attentionBias,
      boolean feedForwardBias,
      Head head) {
    /// @throws MisuseException if `heads` is no multiple of `groups`, or `headSize` is odd
    public Config {
      if (heads % groups != 0) {
        throw new MisuseException(
            "heads must be a multiple of groups (were " + heads + " and " + groups + ")");
      }
      if (headSize % 2 != 0) {
        throw new MisuseException("headSize must be even (was " + headSize + ")");
      }
    }
  }

  /// What follows the last layer.
  public enum Head {
    /// Nothing: the output is the hidden state.
    NONE,
    /// Scores by the embedding's own weights.
    TIED,
    /// Scores by weights of its own.
    OWN
  }

  /// How the angles of the rotary embedding grow with position: `position / theta^(2i / headSize)`,
  /// with long waves stretched.
  ///
  /// @param factor by which waves are stretched; 1 for none
  /// @param low waves longer than `original / low` are stretched by the factor
  /// @param high waves shorter than `original / high` are not; those between are in part
  /// @param original the longest text of the first training
  public record Rotation(double theta, double factor, double low, double high, double original) {
    /// No wave is stretched.
    public static Rotation plain(double theta) {
      return linear(theta, 1);
    }

    /// All waves are stretched.
    public static Rotation linear(double theta, double factor) {
      return new Rotation(theta, factor, 1, 2, 0);
    }

    float[] frequencies(int headSize) {
      float[] frequencies = new float[headSize / 2];
      for (int i = 0; i < frequencies.length; i++) {
        double plain = (float) (1 / Math.pow(theta, 2.0 * i / headSize));
        double waves = original * plain / (2 * Math.PI);
        double kept = Math.clamp((waves - low) / (high - low), 0.0, 1.0);
        frequencies[i] = (float) (plain * (kept + (1 - kept) / factor));
      }
      return frequencies;
    }
  }

  private final float[] frequencies;

  /// A block without values: a load or [#initialize] gives them.
  @SuppressWarnings("this-escape")
  public LlamaBlock(Config config) {
    super(layers(config), config.vocabulary(), config.maxPositions(), false, config.head());
    frequencies = config.rotation().frequencies(config.headSize());
  }

  private static Layers layers(Config config) {
    Set<Trait> traits = EnumSet.of(Trait.RMS_NORM, Trait.GATE);
    if (config.attentionBias()) {
      traits.addAll(List.of(Trait.ATTENTION_BIAS, Trait.OUTPUT_BIAS));
    }
    if (config.feedForwardBias()) {
      traits.add(Trait.FEED_FORWARD_BIAS);
    }
    return new Layers(
        config.layers(),
        config.width(),
        config.hidden(),
        config.heads(),
        config.groups(),
        config.headSize(),
        config.epsilon(),
        config.activation(),
        traits);
  }

  @Override
  Turn turn(NDManager manager, long past, int length, NDArray like) {
    float[] cosines = new float[length * frequencies.length];
    float[] sines = new float[cosines.length];
    for (int i = 0; i < cosines.length; i++) {
      // As the reference, which computes angles in 32 bits.
      float angle = (past + i / frequencies.length) * frequencies[i % frequencies.length];
      cosines[i] = (float) Math.cos(angle);
      sines[i] = (float) Math.sin(angle);
    }
    Shape shape = new Shape(1, 1, length, frequencies.length);
    return new Turn(
        Attention.cast(manager.create(cosines, shape), like),
        Attention.cast(manager.create(sines, shape), like));
  }
}
