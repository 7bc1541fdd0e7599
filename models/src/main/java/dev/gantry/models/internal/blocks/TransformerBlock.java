// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import dev.gantry.djl.internal.ndarray.FusedRows;
import dev.gantry.models.internal.blocks.Description.Attending;
import dev.gantry.models.internal.blocks.Description.Distances;
import dev.gantry.models.internal.blocks.Description.FeedForward;
import dev.gantry.models.internal.blocks.Description.Layer;
import dev.gantry.models.internal.blocks.Description.Place;
import dev.gantry.models.internal.blocks.Description.QueryNorm;
import dev.gantry.models.internal.blocks.Description.Residual;
import dev.gantry.models.spi.KeyValueCache;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// A transformer that a [Description] describes: layers of attention and a feed-forward part, each
/// with a residual connection. Subclasses compute the first hidden states. The parameters may be
/// FLOAT32, FLOAT16 or BFLOAT16. There is no dropout, not even in training.
public abstract class TransformerBlock extends NamedBlock {
  /// The parameters of one layer; null for those that it does not have.
  private record Parts(
      Shortcut attending,
      Dense query,
      Dense key,
      Dense value,
      Part queryNorm,
      Part keyNorm,
      @Nullable Dense distanceKey,
      @Nullable Dense distanceQuery,
      @Nullable Parameter sinks,
      Dense output,
      Shortcut feeding,
      Part feed) {}

  /// A residual connection, which adds a part's result as `behind(x + onResult(part(before(x))))`.
  private record Shortcut(Part before, Part onResult, Part behind) {
    NDArray added(NDArray x, NDArray result, Pass pass) {
      return behind.of(x.add(onResult.of(result, pass)), pass);
    }
  }

  /// The state that all layers of one pass share.
  ///
  /// @param masks returns the mask for a layer's window
  public record Shared(
      IntFunction<Attention.Mask> masks, @Nullable KeyValueCache cache, NDArray like) {
    /// Returns for each text how many tokens come before these; one number if it is the same for
    /// all texts.
    long[] pasts() {
      return cache == null ? new long[1] : cache.positions();
    }

    /// Returns how many tokens each text grows by: these tokens, and the later ones of a prompt
    /// that is fed in pieces.
    long ahead(int length) {
      return cache == null ? length : Math.max(length, cache.expected() - cache.length());
    }

    static Shared unmasked(NDArray like) {
      return new Shared(_ -> Attention.Mask.NOTHING, null, like);
    }
  }

  private final Description description;
  private final List<Parts> layers = new ArrayList<>();
  private final List<OutputPart> outputs = new ArrayList<>();
  private Part last = Part.SAME;
  private @Nullable Parameter distances;
  private Part distancesNorm = Part.SAME;

  public TransformerBlock(Description description) {
    this.description = description;
  }

  public final Description description() {
    return description;
  }

  /// Adds the parameters of the layers and of the outputs.
  ///
  /// @param tokens the embedding's table, to which the head may be tied; null for none
  public final void addLayers(@Nullable Parameter tokens) {
    Distances kind = description.attention().distances();
    if (kind != null) {
      Parameter.Type weight = Parameter.Type.WEIGHT;
      distances = parameter("distances_weight", weight, 2L * kind.span(), description.width());
      distancesNorm = kind.norm() ? norm("distancesNorm", description.width()) : Part.SAME;
    }
    for (int i = 0; i < description.layers().size(); i++) {
      layers.add(parts("layer" + i + "_", description.layers().get(i)));
    }
    last = description.lastNorm() ? norm("norm", description.width()) : Part.SAME;
    description.outputs().forEach(each -> outputs.add(new OutputPart(this, each, tokens)));
  }

  private Parts parts(String name, Layer layer) {
    Attending attention = description.attention();
    int width = description.width();
    int queries = attention.heads() * attention.size();
    int keys = attention.groups() * attention.size();
    Dense query = dense(name + "query", queries, width, attention.bias());
    Dense key = dense(name + "key", keys, width, attention.bias());
    Distances by = attention.distances();
    boolean own = by != null && !by.shared();
    return new Parts(
        shortcut(name, 1, layer.firstNorm()),
        query,
        key,
        dense(name + "value", keys, width, attention.bias()),
        queryNorm(name + "queryNorm", attention.heads()),
        queryNorm(name + "keyNorm", attention.groups()),
        by == null || !by.keys()
            ? null
            : own ? dense(name + "distanceKey", keys, width, true) : key,
        by == null || !by.queries()
            ? null
            : own ? dense(name + "distanceQuery", queries, width, true) : query,
        attention.sinks()
            ? parameter(name + "sinks", Parameter.Type.WEIGHT, attention.heads())
            : null,
        dense(name + "output", width, queries, attention.outputBias()),
        shortcut(name, 2, !description.residual().oneNorm()),
        layer.experts()
            ? ExpertsFeed.of(this, name, description)
            : feed(name, description.feedForward().hidden()));
  }

  private Shortcut shortcut(String name, int number, boolean normed) {
    int width = description.width();
    Place place = description.norms().place();
    Part norm = normed ? norm(name + "norm" + number, width) : Part.SAME;
    Part onResult =
        place == Place.AROUND
            ? norm(name + "norm" + (number + 2), width)
            : place == Place.ON_RESULT ? norm : Part.SAME;
    return new Shortcut(
        place == Place.BEFORE || place == Place.AROUND ? norm : Part.SAME,
        scaled(name + "scale" + number, onResult),
        place == Place.BEHIND ? norm : Part.SAME);
  }

  private Part scaled(String name, Part result) {
    double scale = description.residual().scale();
    Parameter each =
        description.residual().learned()
            ? parameter(name, Parameter.Type.WEIGHT, description.width())
            : null;
    return (x, pass) -> {
      NDArray scaled = result.of(x, pass);
      scaled = scale == 1 ? scaled : scaled.mul(scale);
      return each == null ? scaled : scaled.mul(pass.value(each));
    };
  }

  private Part queryNorm(String name, int heads) {
    Attending attention = description.attention();
    return switch (attention.queryNorm()) {
      case NONE -> Part.SAME;
      case HEAD -> norm(name, attention.size());
      case WHOLE -> norm(name, heads * attention.size());
      case EACH_HEAD ->
          new Norm(
              parameter(name + "_gamma", Parameter.Type.GAMMA, heads, attention.size()),
              null,
              description.norms());
    };
  }

  /// Makes a feed-forward part whose hidden layer has this width.
  public final Part feed(String name, int hidden) {
    FeedForward kind = description.feedForward();
    int width = description.width();
    Dense gate = kind.gated() ? dense(name + "gate", hidden, width, kind.bias()) : null;
    Dense up = dense(name + "up", hidden, width, kind.bias());
    Dense down = dense(name + "down", width, hidden, kind.bias());
    return (x, pass) -> {
      if (gate == null) {
        return down.of(kind.activation().apply(up.of(x, pass)), pass);
      }
      NDArray first = gate.of(x, pass);
      NDArray other = up.of(x, pass);
      Optional<NDArray> fused =
          kind.activation().equals(Activations.SILU) && !pass.training()
              ? FusedRows.gate(first, other)
              : Optional.empty();
      return down.of(fused.orElseGet(() -> kind.activation().apply(first).mul(other)), pass);
    };
  }

  /// Makes a norm of the kind that the layers have.
  public final Norm norm(String name, int width) {
    return norm(name, width, description.norms());
  }

  @Override
  public final OptionalDouble rmsEpsilon() {
    return description.norms().rms()
        ? OptionalDouble.of(description.norms().epsilon())
        : OptionalDouble.empty();
  }

  /// Computes the outputs from the last layer's states.
  public final NDList outputs(NDArray states, TextInputs text, Pass pass) {
    NDArray normed = last.of(states, pass);
    NDList results = new NDList();
    outputs.forEach(output -> results.addAll(output.of(states, normed, text, pass)));
    return results;
  }

  /// @param tokens `[batch, length]`
  public final List<Shape> outputShapes(Shape input, Shape tokens) {
    return outputs.stream().flatMap(output -> output.shapes(tokens).stream()).toList();
  }

  /// Returns the last layer's states.
  ///
  /// @param input the input of the pass; numbers are made in its manager
  public final NDArray states(NDArray input, NDArray embedded, Pass pass, Shared shared) {
    int length = Math.toIntExact(embedded.getShape().get(1));
    Map<Rotation, Rotation.Turn> turns = new HashMap<>();
    DistanceScores byDistance = byDistance(input.getManager(), length, pass);
    // All attentions are made before the first layer, because that layer frees the embedded states
    // whose type and device they take.
    List<Attention> attentions = new ArrayList<>();
    for (Layer layer : description.layers()) {
      Rotation rotation = layer.rotation();
      attentions.add(
          new Attention(
              description.attention(),
              layer.scale(),
              shared.masks().apply(layer.window()),
              rotation == null
                  ? null
                  : turns.computeIfAbsent(
                      rotation,
                      _ ->
                          rotation.at(
                              input.getManager(),
                              shared.pasts(),
                              length,
                              shared.ahead(length),
                              shared.like())),
              byDistance));
    }
    NDArray states = embedded;
    for (int i = 0; i < layers.size(); i++) {
      NDArray before = states;
      int place = i;
      states = step(before, () -> layer(before, place, attentions.get(place), pass, shared));
    }
    return states;
  }

  private @Nullable DistanceScores byDistance(NDManager manager, int length, Pass pass) {
    Distances kind = description.attention().distances();
    if (kind == null || distances == null) {
      return null;
    }
    NDArray table = distancesNorm.of(pass.value(distances), pass);
    return DistanceScores.of(kind, table, length, manager);
  }

  private NDArray layer(NDArray x, int place, Attention attention, Pass pass, Shared shared) {
    Parts parts = layers.get(place);
    Residual residual = description.residual();
    NDArray first = parts.attending().before().of(x, pass);
    NDArray result = attend(first, parts, place, attention, pass, shared);
    NDArray attended = parts.attending().added(x, result, pass);
    NDArray second =
        residual.oneNorm()
            ? first
            : parts.feeding().before().of(residual.parallel() ? x : attended, pass);
    return parts.feeding().added(attended, parts.feed().of(second, pass), pass);
  }

  private NDArray attend(
      NDArray x, Parts parts, int place, Attention attention, Pass pass, Shared shared) {
    Attending kind = description.attention();
    NDArray query = heads(parts.query(), parts.queryNorm(), x, kind.heads(), attention, pass);
    NDArray key = heads(parts.key(), parts.keyNorm(), x, kind.groups(), attention, pass);
    NDArray value = Attention.heads(parts.value().of(x, pass), kind.groups());
    if (shared.cache() != null) {
      NDList all = shared.cache().append(place, key, value);
      key = all.get(0);
      value = all.get(1);
    }
    NDArray sinks = parts.sinks() == null ? null : pass.value(parts.sinks());
    DistanceScores by = attention.distances();
    Attention whole =
        by == null
            ? attention
            : attention.with(
                by.scores(query, key, parts.distanceKey(), parts.distanceQuery(), pass));
    return parts.output().of(whole.attend(query, key, value, sinks), pass);
  }

  /// Computes queries or keys, `[batch, heads, length, size]`.
  private NDArray heads(
      Dense dense, Part norm, NDArray x, int heads, Attention attention, Pass pass) {
    NDArray all = dense.of(x, pass);
    boolean whole = description.attention().queryNorm() == QueryNorm.WHOLE;
    NDArray split = Attention.split(whole ? norm.of(all, pass) : all, heads);
    NDArray normed = whole ? split : norm.of(split, pass);
    Rotation.Turn turn = attention.turn();
    return turn == null ? normed.transpose(0, 2, 1, 3) : turn.of(normed, !pass.training());
  }
}
