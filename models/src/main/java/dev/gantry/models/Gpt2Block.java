// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// GPT-2: a decoder with learned positions and layer normalization before each part.
///
/// Input: `input_ids`, INT64 `[batch, length]`; then, if you like, `attention_mask` of that shape, 1
/// for tokens and 0 for padding; in any order if the arrays have these names. Output: `logits` `[batch, length,
/// vocabulary]`, or without a head the last hidden state `[batch, length, width]`.
///
/// The hub's files hold query, key and value as one tensor, and weights as `[inputs, outputs]`; here
/// they are apart, and as DJL has them. There is no dropout, also in training.
public final class Gpt2Block extends NamedBlock implements CausalBlock {
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
      if (width % heads != 0) {
        throw new MisuseException(
            "width must be a multiple of heads (were " + width + " and " + heads + ")");
      }
    }

    double scale(int layer) {
      double scale = scaled ? 1 / Math.sqrt((double) width / heads) : 1;
      return scaledByLayer ? scale / (layer + 1) : scale;
    }
  }

  private record Layer(
      Norm norm1,
      Dense query,
      Dense key,
      Dense value,
      Dense output,
      Norm norm2,
      Dense up,
      Dense down) {}

  private record Shared(
      List<NDArray> scales, @Nullable NDArray mask, @Nullable KeyValueCache cache) {}

  private final Config config;
  private final Parameter tokens;
  private final Parameter positions;
  private final List<Layer> layers = new ArrayList<>();
  private final Norm norm;
  private final @Nullable Dense head;

  @SuppressWarnings("this-escape")
  public Gpt2Block(Config config) {
    this.config = config;
    int width = config.width();
    tokens = parameter("tokens_weight", Parameter.Type.WEIGHT, config.vocabulary(), width);
    positions = parameter("positions_weight", Parameter.Type.WEIGHT, config.maxPositions(), width);
    for (int i = 0; i < config.layers(); i++) {
      String name = "layer" + i + "_";
      layers.add(
          new Layer(
              norm(name + "norm1", width, config.epsilon()),
              dense(name + "query", width, width, true),
              dense(name + "key", width, width, true),
              dense(name + "value", width, width, true),
              dense(name + "output", width, width, true),
              norm(name + "norm2", width, config.epsilon()),
              dense(name + "up", config.hidden(), width, true),
              dense(name + "down", width, config.hidden(), true)));
    }
    norm = norm("norm", width, config.epsilon());
    head =
        switch (config.head()) {
          case NONE -> null;
          case TIED -> new Dense(tokens, null);
          case OWN -> dense("head", config.vocabulary(), width, false);
        };
  }

  @Override
  NDList forward(NDList inputs, Pass pass) {
    NDArray states = norm.of(states(TextInputs.of(inputs, 2), pass, null), pass);
    return head == null
        ? named(STATES, new NDList(states))
        : named(LOGITS, new NDList(head.of(states, pass)));
  }

  @Override
  public NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache) {
    if (head == null) {
      throw new MisuseException("this GPT-2 has no head: it gives states, and no scores of tokens");
    }
    TextInputs text = TextInputs.of(new NDList(ids), 1);
    Pass pass = new Pass(store, ids.getDevice(), false);
    return kept(
            ids.getManager(),
            () -> {
              NDArray states = states(text, pass, cache);
              NDArray last = states.get(new NDIndex(":, {}", ids.getShape().get(1) - 1));
              return new NDList(head.of(norm.of(last, pass), pass));
            })
        .singletonOrThrow();
  }

  private NDArray states(TextInputs text, Pass pass, @Nullable KeyValueCache cache) {
    NDArray ids = text.ids();
    long past = cache == null ? 0 : cache.length();
    long all = past + ids.getShape().get(1);
    if (all > config.maxPositions()) {
      throw new MisuseException(
          "the text must have at most " + config.maxPositions() + " tokens (has " + all + ")");
    }
    NDArray table = pass.value(positions);
    NDArray states =
        Attention.rows(pass.value(tokens), ids)
            .add(table.get(new NDIndex("{}:{}", past, all)).expandDims(0));
    List<NDArray> scales = new ArrayList<>();
    for (int i = 0; i < layers.size(); i++) {
      scales.add(
          i > 0 && !config.scaledByLayer() ? scales.getFirst() : number(ids, config.scale(i)));
    }
    NDArray mask = Attention.causalMask(ids.getManager(), past, all - past, text.mask(), table);
    Shared shared = new Shared(scales, mask, cache);
    for (int i = 0; i < layers.size(); i++) {
      NDArray before = states;
      int place = i;
      states = step(before, () -> layer(before, place, pass, shared));
    }
    return states;
  }

  private NDArray layer(NDArray states, int place, Pass pass, Shared shared) {
    Layer layer = layers.get(place);
    NDArray x = layer.norm1().of(states, pass);
    NDArray attended = states.add(attention(x, place, pass, shared));
    NDArray y = layer.norm2().of(attended, pass);
    NDArray inner = config.activation().apply(layer.up().of(y, pass));
    return attended.add(layer.down().of(inner, pass));
  }

  private NDArray attention(NDArray x, int place, Pass pass, Shared shared) {
    Layer layer = layers.get(place);
    NDArray query = Attention.heads(layer.query().of(x, pass), config.heads());
    NDArray key = Attention.heads(layer.key().of(x, pass), config.heads());
    NDArray value = Attention.heads(layer.value().of(x, pass), config.heads());
    if (shared.cache() != null) {
      NDList all = shared.cache().append(place, key, value);
      key = all.get(0);
      value = all.get(1);
    }
    NDArray scale = shared.scales().get(place);
    return layer.output().of(Attention.attend(query, key, value, scale, shared.mask()), pass);
  }

  @Override
  public int vocabularySize() {
    return config.vocabulary();
  }

  @Override
  public int maxPositions() {
    return config.maxPositions();
  }

  @Override
  List<Shape> outputShapes(Shape input) {
    return List.of(input.add(head == null ? config.width() : config.vocabulary()));
  }
}
