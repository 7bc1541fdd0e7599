// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Describes what a transformer computes. Each family of models has rules to derive this from its
/// `config.json`; the blocks can compute every description. Equal descriptions make blocks that
/// answer alike.
///
/// @param causal whether a token sees only the tokens before it
/// @param width the width of the hidden states
/// @param lastNorm whether a norm follows the last layer
/// @param outputs the block's outputs, in its order
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

  /// Computes the first hidden states from the model's input.
  public sealed interface Embedding {}

  /// Embeds tokens.
  ///
  /// @param width the width of the table; if it differs from that of the hidden states, a dense
  ///     layer follows
  /// @param scale the factor of the table's rows
  /// @param types the number of token types; 0 for none
  /// @param norm whether a norm follows
  /// @param blank whether the states of padding begin as zeros, and padding sees no token
  public record Tokens(
      int vocabulary,
      int width,
      double scale,
      Positions positions,
      int types,
      boolean norm,
      boolean blank)
      implements Embedding {}

  /// The positions of tokens.
  ///
  /// @param longest the length of the longest text, in tokens
  /// @param rows the number of rows of the table of learned positions; 0 if there is no table
  /// @param padding the id of the padding token, which has no position; the first other token has
  ///     the position `padding + 1`. -1 if positions count from 0 for all tokens
  public record Positions(int longest, int rows, int padding) {}

  /// Embeds the patches of an image.
  ///
  /// @param size the side length of an image in pixels; `patch` is that of a patch
  /// @param anySize whether images may have another size; the learned positions are then
  ///     interpolated
  /// @param first how many tokens come before the patches: a class token, and maybe a distillation
  ///     token
  /// @param bias whether the convolution has a bias
  /// @param norm whether a norm follows
  public record Patches(
      int channels, int size, boolean anySize, int patch, int first, boolean bias, boolean norm)
      implements Embedding {
    int count() {
      return size / patch * (size / patch);
    }
  }

  /// Says where the norms of a layer are.
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
  /// @param rms whether the norms are RMSNorm; otherwise they are layer normalisation
  /// @param bias whether layer normalisation has a bias
  /// @param plusOne whether the files store the scale minus one
  public record Norms(Place place, boolean rms, double epsilon, boolean bias, boolean plusOne) {}

  /// Says how queries and keys are normalised.
  public enum QueryNorm {
    NONE,
    /// One norm for all heads, over the size of a head.
    HEAD,
    /// One norm for each head, over its size.
    EACH_HEAD,
    /// One norm over all heads together.
    WHOLE
  }

  /// Describes the attention of all layers.
  ///
  /// @param groups the number of heads for keys and values; each serves `heads / groups` query
  ///     heads
  /// @param bias whether the layers of queries, keys and values have a bias
  /// @param cap the bound of scores, by `cap · tanh(score / cap)`; 0 for none
  /// @param sinks whether each head has a learned score that takes part in the softmax and has no
  ///     value
  /// @param buckets the number of buckets of a learned bias by the distance of two tokens; 0 for
  ///     none
  /// @param distances the further scores by the distance of two tokens; null for none
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

  /// Describes scores by the distance of two tokens, which [DistanceScores] computes.
  ///
  /// @param span how many distances to each side the table has
  /// @param buckets how many buckets far distances share; 0 if each distance has its own
  /// @param farthest the longest distance that has a bucket of its own
  /// @param norm whether the table is normalised
  /// @param shared whether a layer computes the queries and keys of distances with its own query
  ///     and key layers
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
  /// @param hidden the width of the hidden layer
  /// @param experts the mixture of experts; null for none
  public record FeedForward(
      int hidden,
      boolean gated,
      UnaryOperator<NDArray> activation,
      boolean bias,
      @Nullable Experts experts) {}

  /// Describes a mixture of experts: for each token, a router chooses some of many feed-forward
  /// parts.
  ///
  /// @param chosen how many experts are chosen for a token
  /// @param hidden the width of an expert's hidden layer
  /// @param normalized whether the weights of the chosen experts add up to one
  /// @param stacked whether one tensor holds all experts, with biases and a bounded gate, as in
  ///     gpt-oss
  public record Experts(int count, int chosen, int hidden, boolean normalized, boolean stacked) {}

  /// Describes how the results of a layer's parts are added to the hidden states.
  ///
  /// @param scale the factor of a part's result
  /// @param learned whether each element of a part's result has a learned factor
  /// @param parallel whether both parts take the layer's input; otherwise the second part takes
  ///     the first one's result
  /// @param oneNorm whether parallel parts share a norm
  public record Residual(double scale, boolean learned, boolean parallel, boolean oneNorm) {}

  /// Describes what differs from layer to layer.
  ///
  /// @param rotation the rotary embedding; null for none
  /// @param window how many tokens a token of a decoder sees, including itself; in an encoder, a
  ///     token sees fewer than this many tokens to each side; 0 for all
  /// @param scale the factor of attention scores
  /// @param firstNorm whether there is a norm before the attention
  /// @param experts whether the feed-forward part is a mixture of experts
  public record Layer(
      @Nullable Rotation rotation, int window, double scale, boolean firstNorm, boolean experts) {}

  /// Says which hidden states an output is computed from.
  public enum Pool {
    ALL,
    /// All states, before the last norm.
    UNNORMED,
    FIRST,
    /// The state of the last token that is not padding.
    LAST,
    /// The state at the last place, even if padding is there.
    FINAL,
    /// The state of the first token that ends a text.
    END,
    /// The mean of the states that the mask does not hide.
    MEAN,
    /// The first state, concatenated with the mean of the others.
    FIRST_AND_MEAN,
    /// The result of the attention of a learned query to all states, which [ProbePool] computes.
    PROBE
  }

  /// Describes an output: hidden states are pooled, go through a dense layer, and become scores.
  ///
  /// @param names the output's name; one name for each label if each label's scores are an output
  ///     of their own
  /// @param token the padding token's id for [Pool#LAST], or the id of the token that ends a text
  ///     for [Pool#END]; -1 for none
  /// @param stem the dense layer; null for none
  /// @param scores the scores; null if the states themselves are the output
  public record Output(
      List<String> names, Pool pool, int token, @Nullable Stem stem, @Nullable Scores scores) {}

  /// A dense layer with an activation, and with a norm if `norm` is true.
  ///
  /// @param name the prefix of its parameters' names
  /// @param width the width of its result
  public record Stem(
      String name, int width, boolean bias, UnaryOperator<NDArray> activation, boolean norm) {}

  /// Computes scores from hidden states.
  public sealed interface Scores {}

  /// Scores of labels.
  ///
  /// @param bare whether the axis of labels is removed, which requires a single label
  public record Labels(String name, int count, boolean bias, boolean bare) implements Scores {}

  /// Scores of the vocabulary's tokens.
  ///
  /// @param tied whether the embedding's table computes the scores; otherwise they have a table of
  ///     their own
  /// @param divisor the number that scores are divided by
  /// @param cap the bound of scores, as in [Attending]; 0 for none
  public record Vocabulary(boolean tied, boolean bias, double divisor, double cap)
      implements Scores {}
}
