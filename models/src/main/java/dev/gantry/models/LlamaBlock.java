// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Llama 1 to 3: a decoder with grouped-query attention, rotary embedding, RMSNorm and SwiGLU.
///
/// Input: `input_ids`, INT64 `[batch, length]`; then, if you like, `attention_mask` of that shape, 1
/// for tokens and 0 for padding; in any order if the arrays have these names. Output: `logits` `[batch, length,
/// vocabulary]`, or without a head the last hidden state `[batch, length, width]`.
///
/// Parameters: `embedding_weight`, `layer{i}_query_weight` and so on, `norm_weight`, `head_weight`.
/// They may be FLOAT32, FLOAT16 or BFLOAT16. There is no dropout, also in training.
public final class LlamaBlock extends NamedBlock implements CausalBlock {
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

  private record Layer(
      Parameter inputNorm,
      Dense query,
      Dense key,
      Dense value,
      Dense output,
      Parameter middleNorm,
      Dense gate,
      Dense up,
      Dense down) {}

  /// What all layers of one pass share.
  ///
  /// @param scale of the attention's scores
  /// @param cosines `[1, 1, length, headSize / 2]`, as `sines`
  private record Shared(
      NDArray scale,
      NDArray epsilon,
      NDArray cosines,
      NDArray sines,
      @Nullable NDArray mask,
      @Nullable KeyValueCache cache) {}

  private final Config config;
  private final float[] frequencies;
  private final Parameter embedding;
  private final List<Layer> layers = new ArrayList<>();
  private final Parameter norm;
  private final @Nullable Dense head;

  @SuppressWarnings("this-escape")
  public LlamaBlock(Config config) {
    this.config = config;
    frequencies = config.rotation().frequencies(config.headSize());
    embedding = weight("embedding_weight", config.vocabulary(), config.width());
    for (int i = 0; i < config.layers(); i++) {
      layers.add(layer("layer" + i + "_"));
    }
    norm = scale("norm_weight");
    head =
        switch (config.head()) {
          case NONE -> null;
          case TIED -> new Dense(embedding, null);
          case OWN -> dense("head", config.vocabulary(), config.width(), false);
        };
  }

  private Layer layer(String name) {
    int width = config.width();
    int queries = config.heads() * config.headSize();
    int keys = config.groups() * config.headSize();
    boolean attentionBias = config.attentionBias();
    boolean bias = config.feedForwardBias();
    return new Layer(
        scale(name + "inputNorm_weight"),
        dense(name + "query", queries, width, attentionBias),
        dense(name + "key", keys, width, attentionBias),
        dense(name + "value", keys, width, attentionBias),
        dense(name + "output", width, queries, attentionBias),
        scale(name + "middleNorm_weight"),
        dense(name + "gate", config.hidden(), width, bias),
        dense(name + "up", config.hidden(), width, bias),
        dense(name + "down", width, config.hidden(), bias));
  }

  private Parameter weight(String name, long... shape) {
    return parameter(name, Parameter.Type.WEIGHT, shape);
  }

  private Parameter scale(String name) {
    return parameter(name, Parameter.Type.GAMMA, config.width());
  }

  @Override
  NDList forward(NDList inputs, Pass pass) {
    TextInputs text = TextInputs.of(inputs, 2);
    Shared shared = shared(text, pass, null);
    NDArray states = rmsNorm(states(text.ids(), pass, shared), norm, pass, shared);
    return head == null
        ? named(STATES, new NDList(states))
        : named(LOGITS, new NDList(head.of(states, pass)));
  }

  @Override
  public NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache) {
    if (head == null) {
      throw new MisuseException("this Llama has no head: it gives states, and no scores of tokens");
    }
    TextInputs text = TextInputs.of(new NDList(ids), 1);
    Pass pass = new Pass(store, ids.getDevice(), false);
    return kept(
            ids.getManager(),
            () -> {
              Shared shared = shared(text, pass, cache);
              NDArray states = states(ids, pass, shared);
              NDArray last = states.get(new NDIndex(":, {}", ids.getShape().get(1) - 1));
              return new NDList(head.of(rmsNorm(last, norm, pass, shared), pass));
            })
        .singletonOrThrow();
  }

  private Shared shared(TextInputs text, Pass pass, @Nullable KeyValueCache cache) {
    NDArray ids = text.ids();
    NDManager manager = ids.getManager();
    NDArray table = pass.value(embedding);
    long past = cache == null ? 0 : cache.length();
    int length = (int) ids.getShape().get(1);
    float[] cosines = new float[length * frequencies.length];
    float[] sines = new float[cosines.length];
    for (int i = 0; i < cosines.length; i++) {
      // As the reference, which computes angles in 32 bits.
      float angle = (past + i / frequencies.length) * frequencies[i % frequencies.length];
      cosines[i] = (float) Math.cos(angle);
      sines[i] = (float) Math.sin(angle);
    }
    Shape shape = new Shape(1, 1, length, frequencies.length);
    return new Shared(
        number(ids, 1 / Math.sqrt(config.headSize())),
        number(ids, config.epsilon()),
        Attention.cast(manager.create(cosines, shape), table),
        Attention.cast(manager.create(sines, shape), table),
        Attention.causalMask(manager, past, length, text.mask(), table),
        cache);
  }

  private NDArray states(NDArray ids, Pass pass, Shared shared) {
    NDArray states = Attention.rows(pass.value(embedding), ids);
    for (int i = 0; i < layers.size(); i++) {
      NDArray before = states;
      int place = i;
      states = step(before, () -> layer(before, place, pass, shared));
    }
    return states;
  }

  private NDArray layer(NDArray states, int place, Pass pass, Shared shared) {
    Layer layer = layers.get(place);
    NDArray x = rmsNorm(states, layer.inputNorm(), pass, shared);
    NDArray attended = states.add(attention(x, place, pass, shared));
    NDArray y = rmsNorm(attended, layer.middleNorm(), pass, shared);
    NDArray gate = config.activation().apply(layer.gate().of(y, pass));
    return attended.add(layer.down().of(gate.mul(layer.up().of(y, pass)), pass));
  }

  private NDArray attention(NDArray x, int place, Pass pass, Shared shared) {
    Layer layer = layers.get(place);
    NDArray query = rotated(Attention.heads(layer.query().of(x, pass), config.heads()), shared);
    NDArray key = rotated(Attention.heads(layer.key().of(x, pass), config.groups()), shared);
    NDArray value = Attention.heads(layer.value().of(x, pass), config.groups());
    if (shared.cache() != null) {
      NDList all = shared.cache().append(place, key, value);
      key = all.get(0);
      value = all.get(1);
    }
    NDArray mixed = Attention.attend(query, key, value, shared.scale(), shared.mask());
    return layer.output().of(mixed, pass);
  }

  /// Turns each pair of an element of the first half and its counterpart of the second by the angle
  /// of the position.
  private static NDArray rotated(NDArray heads, Shared shared) {
    NDList halves = heads.split(2, 3);
    NDArray first = halves.get(0);
    NDArray second = halves.get(1);
    NDArray cosines = shared.cosines();
    NDArray sines = shared.sines();
    return NDArrays.concat(
        new NDList(
            first.mul(cosines).sub(second.mul(sines)), second.mul(cosines).add(first.mul(sines))),
        3);
  }

  /// `x / √(mean(x²) + ε) · weight`; the mean is of 32-bit numbers.
  private static NDArray rmsNorm(NDArray x, Parameter weight, Pass pass, Shared shared) {
    NDArray root =
        x.toType(DataType.FLOAT32, false)
            .square()
            .mean(new int[] {-1}, true)
            .add(shared.epsilon())
            .sqrt();
    return x.div(root).toType(x.getDataType(), false).mul(pass.value(weight));
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
