// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// A transformer: layers of attention and a feed-forward part, each with a shortcut around it, and a head. How tokens
/// are embedded is each model's own. The parameters may be FLOAT32, FLOAT16 or BFLOAT16. There is no dropout, also in
/// training.
abstract class TransformerBlock extends NamedBlock {
  /// A property in which the layers of one model differ from those of another.
  enum Trait {
    /// A norm follows each part and its shortcut, instead of preceding the part.
    NORM_BEHIND,
    /// The norms are RMSNorm, and not layer normalization.
    RMS_NORM,
    /// Query, key and value have biases.
    ATTENTION_BIAS,
    /// The dense layer that joins the heads' results has a bias.
    OUTPUT_BIAS,
    /// The feed-forward part has biases.
    FEED_FORWARD_BIAS,
    /// The feed-forward part has a gate.
    GATE,
    /// Scores are not divided by the square root of a head's size.
    UNSCALED,
    /// Scores are also divided by the layer's number, from 1.
    SCALED_BY_LAYER
  }

  /// Describes the layers.
  ///
  /// @param hidden the width of the feed-forward part
  /// @param groups how many heads there are for keys and values; each serves `heads / groups` queries
  record Layers(
      int count,
      int width,
      int hidden,
      int heads,
      int groups,
      int headSize,
      double epsilon,
      UnaryOperator<NDArray> activation,
      Set<Trait> traits) {
    boolean has(Trait trait) {
      return traits.contains(trait);
    }
  }

  private record Layer(
      Norm norm1,
      Dense query,
      Dense key,
      Dense value,
      Dense output,
      Norm norm2,
      @Nullable Dense gate,
      Dense up,
      Dense down) {}

  /// Holds what all layers of one pass share.
  ///
  /// @param mask hides tokens; null for none
  /// @param turn turns queries and keys by their position; null for no rotary embedding
  record Shared(
      @Nullable NDArray mask, Rotation.@Nullable Turn turn, @Nullable KeyValueCache cache) {
    static final Shared NOTHING = new Shared(null, null, null);
  }

  /// Makes an output from the last hidden states.
  interface Output {
    NDArray of(NDArray states, Pass pass);
  }

  private final Layers sizes;
  private final Head head;
  private final int headSize;
  private final List<Layer> layers = new ArrayList<>();
  private final List<Output> outputs = new ArrayList<>();

  /// @param headSize how many labels or tokens the head scores, or the width of its pooler
  TransformerBlock(Layers sizes, Head head, int headSize) {
    this.sizes = sizes;
    this.head = head;
    this.headSize = headSize;
  }

  /// Adds the layers' parameters.
  final void addLayers() {
    int width = sizes.width();
    int queries = sizes.heads() * sizes.headSize();
    int keys = sizes.groups() * sizes.headSize();
    boolean bias = sizes.has(Trait.ATTENTION_BIAS);
    boolean inner = sizes.has(Trait.FEED_FORWARD_BIAS);
    for (int i = 0; i < sizes.count(); i++) {
      String name = "layer" + i + "_";
      layers.add(
          new Layer(
              norm(name + "norm1"),
              dense(name + "query", queries, width, bias),
              dense(name + "key", keys, width, bias),
              dense(name + "value", keys, width, bias),
              dense(name + "output", width, queries, sizes.has(Trait.OUTPUT_BIAS)),
              norm(name + "norm2"),
              sizes.has(Trait.GATE) ? dense(name + "gate", sizes.hidden(), width, inner) : null,
              dense(name + "up", sizes.hidden(), width, inner),
              dense(name + "down", width, sizes.hidden(), inner)));
    }
  }

  /// Adds the head's parameters.
  ///
  /// @param scores makes the output that scores the tokens of the vocabulary
  final void addHead(Supplier<Output> scores) {
    switch (head) {
      case NONE -> outputs.add((states, _) -> states);
      case POOLER -> {
        outputs.add((states, _) -> states);
        outputs.add(pooler(headSize));
      }
      case TIED, OWN -> outputs.add(scores.get());
      case SEQUENCE -> {
        Output pooler = pooler(sizes.width());
        Dense labels = dense("labels", headSize, sizes.width(), true);
        outputs.add((states, pass) -> labels.of(pooler.of(states, pass), pass));
      }
      case FIRST -> {
        Dense labels = dense("labels", headSize, sizes.width(), true);
        outputs.add((states, pass) -> labels.of(first(states), pass));
      }
      case TOKENS -> outputs.add(dense("labels", headSize, sizes.width(), true)::of);
    }
  }

  private Output pooler(int size) {
    Dense pooler = dense("pooler", size, sizes.width(), true);
    return (states, pass) -> pooler.of(first(states), pass).tanh();
  }

  private static NDArray first(NDArray states) {
    return states.get(new NDIndex(":, 0"));
  }

  /// The head's outputs for the last states, to which the model's last norm, if any, has been applied
  /// already.
  final NDList outputs(NDArray states, Pass pass) {
    NDList results = new NDList();
    outputs.forEach(output -> results.add(output.of(states, pass)));
    return named(head.outputs(), results);
  }

  /// @param tokens `[batch, length]`
  final List<Shape> headShapes(Shape tokens) {
    Shape one = new Shape(tokens.get(0), headSize);
    return switch (head) {
      case NONE -> List.of(tokens.add(sizes.width()));
      case POOLER -> List.of(tokens.add(sizes.width()), one);
      case TIED, OWN, TOKENS -> List.of(tokens.add(headSize));
      case SEQUENCE, FIRST -> List.of(one);
    };
  }

  final Head head() {
    return head;
  }

  /// A norm of the kind that the layers have.
  final Norm norm(String name) {
    return new Norm(
        parameter(name + "_gamma", Parameter.Type.GAMMA, sizes.width()),
        sizes.has(Trait.RMS_NORM)
            ? null
            : parameter(name + "_beta", Parameter.Type.BETA, sizes.width()),
        sizes.epsilon());
  }

  @Override
  final OptionalDouble rmsEpsilon() {
    return sizes.has(Trait.RMS_NORM) ? OptionalDouble.of(sizes.epsilon()) : OptionalDouble.empty();
  }

  /// The learned positions `from` to `to`, exclusive, as `[1, to - from, width]`.
  ///
  /// @throws MisuseException if there are fewer
  static NDArray placed(Parameter positions, long from, long to, Pass pass) {
    NDArray table = pass.value(positions);
    long most = table.getShape().get(0);
    if (to > most) {
      throw new MisuseException("the text must have at most " + most + " tokens (has " + to + ")");
    }
    return table.get(new NDIndex("{}:{}", from, to)).expandDims(0);
  }

  /// The factor by which the attention scores of a layer are multiplied.
  private double scale(int layer) {
    double scale = sizes.has(Trait.UNSCALED) ? 1 : 1 / Math.sqrt(sizes.headSize());
    return sizes.has(Trait.SCALED_BY_LAYER) ? scale / (layer + 1) : scale;
  }

  /// The last layer's states.
  ///
  /// @param input the input of the pass, in whose manager numbers are made
  final NDArray states(NDArray input, NDArray embedded, Pass pass, Shared shared) {
    List<NDArray> scales = new ArrayList<>();
    for (int i = 0; i < layers.size(); i++) {
      scales.add(i > 0 && scale(i) == scale(0) ? scales.getFirst() : number(input, scale(i)));
    }
    NDArray states = embedded;
    for (int i = 0; i < layers.size(); i++) {
      NDArray before = states;
      int place = i;
      states = step(before, () -> layer(before, place, scales.get(place), pass, shared));
    }
    return states;
  }

  private NDArray layer(NDArray states, int place, NDArray scale, Pass pass, Shared shared) {
    Layer layer = layers.get(place);
    if (sizes.has(Trait.NORM_BEHIND)) {
      NDArray attended =
          layer.norm1().of(states.add(attention(states, place, scale, pass, shared)), pass);
      return layer.norm2().of(attended.add(feedForward(attended, layer, pass)), pass);
    }
    NDArray x = layer.norm1().of(states, pass);
    NDArray attended = states.add(attention(x, place, scale, pass, shared));
    return attended.add(feedForward(layer.norm2().of(attended, pass), layer, pass));
  }

  private NDArray attention(NDArray x, int place, NDArray scale, Pass pass, Shared shared) {
    Layer layer = layers.get(place);
    NDArray query = Attention.heads(layer.query().of(x, pass), sizes.heads());
    NDArray key = Attention.heads(layer.key().of(x, pass), sizes.groups());
    NDArray value = Attention.heads(layer.value().of(x, pass), sizes.groups());
    if (shared.turn() != null) {
      query = shared.turn().of(query);
      key = shared.turn().of(key);
    }
    if (shared.cache() != null) {
      NDList all = shared.cache().append(place, key, value);
      key = all.get(0);
      value = all.get(1);
    }
    return layer.output().of(Attention.attend(query, key, value, scale, shared.mask()), pass);
  }

  private NDArray feedForward(NDArray x, Layer layer, Pass pass) {
    if (layer.gate() == null) {
      return layer.down().of(sizes.activation().apply(layer.up().of(x, pass)), pass);
    }
    NDArray gate = sizes.activation().apply(layer.gate().of(x, pass));
    return layer.down().of(gate.mul(layer.up().of(x, pass)), pass);
  }
}
