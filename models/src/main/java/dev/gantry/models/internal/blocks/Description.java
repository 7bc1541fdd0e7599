// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Describes what a transformer computes. A family of models is a way to make this of a `config.json`; the blocks compute
/// any of it. Equal descriptions make blocks that answer alike.
///
/// @param causal whether a token sees only those before it
/// @param width of the hidden states
/// @param lastNorm whether a norm follows the last layer
/// @param outputs what the block returns, in its order
public record Description(
    boolean causal,
    int width,
    Embedding embedding,
    Norms norms,
    boolean lastNorm,
    Attending attention,
    FeedForward feedForward,
    Residual residual,
    List<Layer> layers,
    List<Output> outputs)
    implements Design {
  @Override
  public Block newBlock() {
    return switch (embedding) {
      case Tokens tokens when causal -> new DecoderBlock(this, tokens);
      case Tokens tokens -> new TextBlock(this, tokens);
      case Patches patches -> new VitBlock(this, patches);
    };
  }

  /// Makes the first states of what is given to the model.
  public sealed interface Embedding {}

  /// Embeds tokens.
  ///
  /// @param width of the table; if it is not that of the states, a dense layer follows
  /// @param scale by which rows of the table are multiplied
  /// @param types how many token types there are; 0 for none
  /// @param norm whether a norm follows
  /// @param blank whether padding begins as zeros and sees no token
  public record Tokens(
      int vocabulary,
      int width,
      double scale,
      Positions positions,
      int types,
      boolean norm,
      boolean blank)
      implements Embedding {}

  /// Positions of tokens.
  ///
  /// @param longest text, in tokens
  /// @param rows of the table of learned positions; 0 if there is none
  /// @param padding the token that has no position; the positions of others count on from its number. -1: positions
  ///     count from 0, whatever the tokens
  public record Positions(int longest, int rows, int padding) {}

  /// Embeds the patches of an image.
  ///
  /// @param size of an image on both sides, in pixels, as `patch`
  /// @param anySize whether images may have another size: positions are then interpolated
  /// @param first how many tokens come before the patches: a class token, and one for distillation
  /// @param bias whether the convolution has one
  /// @param norm whether a norm follows
  public record Patches(
      int channels, int size, boolean anySize, int patch, int first, boolean bias, boolean norm)
      implements Embedding {
    int count() {
      return size / patch * (size / patch);
    }
  }

  /// Says where the norms of a layer stand.
  public enum Place {
    /// `x + part(norm(x))`
    BEFORE,
    /// `norm(x + part(x))`
    BEHIND,
    /// `x + norm(part(x))`
    ON_RESULT,
    /// `x + norm(part(norm(x)))`
    AROUND
  }

  /// Describes the norms.
  ///
  /// @param rms RMSNorm; else layer normalization
  /// @param bias of layer normalization
  /// @param plusOne whether the stored scale is one less than the scale
  public record Norms(Place place, boolean rms, double epsilon, boolean bias, boolean plusOne) {}

  /// Says which norm queries and keys have.
  public enum QueryNorm {
    NONE,
    /// One for all heads, over a head's size.
    HEAD,
    /// One for each head, over its size.
    EACH_HEAD,
    /// One over all heads together.
    WHOLE
  }

  /// Describes the attention of all layers.
  ///
  /// @param groups how many heads there are for keys and values; each serves `heads / groups` queries
  /// @param bias of queries, keys and values
  /// @param cap the bound to which scores are drawn by `cap · tanh(score / cap)`; 0 for none
  /// @param sinks whether each head has a score that takes a share of the softmax and has no value
  /// @param buckets of a learned bias by the distance of two tokens; 0 for none
  /// @param distances null if scores do not depend on them besides
  public record Attending(
      int heads,
      int groups,
      int size,
      boolean bias,
      boolean outputBias,
      QueryNorm queryNorm,
      double cap,
      boolean sinks,
      int buckets,
      @Nullable Distances distances) {}

  /// Describes scores by the distance of two tokens, as [DistanceScores] makes them.
  ///
  /// @param span how many distances to one side have a place in the table
  /// @param buckets that far distances share; 0 for none
  /// @param farthest distance that has a bucket
  /// @param norm whether the table is normalized
  /// @param shared whether a layer's own query and key make those of the distances, instead of others
  /// @param keys whether distances have keys
  /// @param queries whether distances have queries
  public record Distances(
      int span,
      int buckets,
      int farthest,
      boolean norm,
      boolean shared,
      boolean keys,
      boolean queries) {}

  /// Describes the feed-forward part of all layers.
  ///
  /// @param hidden its width
  /// @param experts null if there are none
  public record FeedForward(
      int hidden,
      boolean gated,
      UnaryOperator<NDArray> activation,
      boolean bias,
      @Nullable Experts experts) {}

  /// Describes a mixture of experts: a router chooses, for each token, some of many feed-forward parts.
  ///
  /// @param chosen how many a token has
  /// @param hidden the width of one
  /// @param normalized whether the shares of those chosen add up to one
  /// @param stacked whether one tensor holds all experts, with biases and a bounded gate, as gpt-oss has it
  public record Experts(int count, int chosen, int hidden, boolean normalized, boolean stacked) {}

  /// Describes how a layer's parts are added.
  ///
  /// @param scale by which a part's result is multiplied
  /// @param learned whether each element of a part's result has a factor of its own
  /// @param parallel whether both parts take the layer's input, instead of the second that of the first
  /// @param oneNorm whether parallel parts share a norm
  public record Residual(double scale, boolean learned, boolean parallel, boolean oneNorm) {}

  /// Describes what differs from layer to layer.
  ///
  /// @param rotation null for no rotary embedding
  /// @param window how far a token sees: as many tokens as this, itself included, or, in an encoder, less than this
  ///     to both sides; 0 for all
  /// @param scale by which attention scores are multiplied
  /// @param firstNorm whether there is a norm before the attention
  /// @param experts whether the feed-forward part is a mixture of experts
  public record Layer(
      @Nullable Rotation rotation, int window, double scale, boolean firstNorm, boolean experts) {}

  /// Says which states an output takes.
  public enum Pool {
    ALL,
    /// All, before the last norm.
    UNNORMED,
    FIRST,
    /// The last one that is not the padding token.
    LAST,
    /// The first one of the token that ends a text.
    END,
    /// The mean over the tokens that the mask does not hide.
    MEAN,
    /// The first one, and behind it the mean of the others.
    FIRST_AND_MEAN,
    /// The result of the attention of a learned state to all states, as [ProbePool] computes it.
    PROBE
  }

  /// Describes an output: states are pooled, go through a dense layer, and become scores.
  ///
  /// @param names more than one if the scores are taken apart, one name for each label
  /// @param token the padding token for [Pool#LAST], or the one that ends a text for [Pool#END]; -1 for none
  /// @param stem null for none
  /// @param scores null for none
  public record Output(
      List<String> names, Pool pool, int token, @Nullable Stem stem, @Nullable Scores scores) {}

  /// A dense layer, its activation, and a norm if there is one.
  ///
  /// @param name of its parameters
  /// @param width of its result
  public record Stem(
      String name, int width, boolean bias, UnaryOperator<NDArray> activation, boolean norm) {}

  /// Makes scores of states.
  public sealed interface Scores {}

  /// Scores of labels.
  ///
  /// @param bare whether the only label's axis is left out
  public record Labels(String name, int count, boolean bias, boolean bare) implements Scores {}

  /// Scores of the vocabulary's tokens.
  ///
  /// @param tied whether the embedding's table makes them; else a table of its own
  /// @param divisor by which they are divided
  /// @param cap as that of attention scores
  public record Vocabulary(boolean tied, boolean bias, double divisor, double cap)
      implements Scores {}
}
