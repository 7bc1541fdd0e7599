// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.nn.Parameter;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// The layers of a transformer: attention and a feed-forward part, each with a shortcut around it. What
/// comes before and after them is each model's own.
abstract class TransformerBlock extends NamedBlock {
  /// How layers differ from one model to another.
  enum Trait {
    /// A norm stands behind each part and its shortcut, and not before the part.
    NORM_BEHIND,
    /// The norms are RMSNorm, and not layer normalization.
    RMS_NORM,
    /// Query, key and value have biases.
    ATTENTION_BIAS,
    /// What gathers the heads has a bias.
    OUTPUT_BIAS,
    /// The feed-forward part has biases.
    FEED_FORWARD_BIAS,
    /// The feed-forward part has a gate.
    GATE
  }

  /// What the layers are.
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
    /// Layers with as many keys as queries, and with all biases.
    static Layers of(
        int count,
        int width,
        int hidden,
        int heads,
        double epsilon,
        UnaryOperator<NDArray> activation,
        Trait... others) {
      Set<Trait> traits =
          EnumSet.of(Trait.ATTENTION_BIAS, Trait.OUTPUT_BIAS, Trait.FEED_FORWARD_BIAS);
      traits.addAll(List.of(others));
      int size = width / heads;
      return new Layers(count, width, hidden, heads, heads, size, epsilon, activation, traits);
    }

    Layers without(Trait trait) {
      Set<Trait> others = EnumSet.copyOf(traits);
      others.remove(trait);
      return new Layers(count, width, hidden, heads, groups, headSize, epsilon, activation, others);
    }

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

  /// What all layers of one pass share.
  ///
  /// @param mask hides tokens; null for none
  /// @param turn turns queries and keys by their position; null for no rotary embedding
  record Shared(@Nullable NDArray mask, @Nullable Turn turn, @Nullable KeyValueCache cache) {
    static final Shared NOTHING = new Shared(null, null, null);
  }

  /// Turns each pair of an element of the first half and its counterpart of the second by the angle of
  /// the position.
  ///
  /// @param cosines `[1, 1, length, headSize / 2]`, as `sines`
  record Turn(NDArray cosines, NDArray sines) {
    NDArray of(NDArray heads) {
      NDList halves = heads.split(2, 3);
      NDArray first = halves.get(0);
      NDArray second = halves.get(1);
      return NDArrays.concat(
          new NDList(
              first.mul(cosines).sub(second.mul(sines)), second.mul(cosines).add(first.mul(sines))),
          3);
    }
  }

  private final Layers sizes;
  private final List<Layer> layers = new ArrayList<>();

  TransformerBlock(Layers sizes) {
    this.sizes = sizes;
  }

  static void requireMultiple(int width, int heads) {
    if (width % heads != 0) {
      throw new MisuseException(
          "width must be a multiple of heads (were " + width + " and " + heads + ")");
    }
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
  final double epsilon() {
    return sizes.epsilon();
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

  /// The factor of the scores of a layer's attention.
  ///
  /// @param layer its number, from 0
  double scale(int layer) {
    return 1 / Math.sqrt(sizes.headSize());
  }

  /// The last layer's states.
  ///
  /// @param input in whose manager numbers are made
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
