// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import dev.gantry.core.MisuseException;
import dev.gantry.models.internal.blocks.Description.Positions;
import dev.gantry.models.internal.blocks.Description.Tokens;
import dev.gantry.models.spi.KeyValueCache;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A model of texts: an encoder, whose tokens see all tokens, or a decoder ([DecoderBlock]), whose
/// tokens see only earlier tokens.
///
/// Input: `input_ids`, INT64 `[batch, length]`. Optional inputs of the same shape are
/// `attention_mask`, 1 for tokens and 0 for padding, and for an encoder with token types
/// `token_type_ids`, 0 for the first and 1 for the second text of a pair. DJL's tokenizers have
/// this order. Arrays with these names may come in any order.
public class TextBlock extends TransformerBlock {
  private final Tokens sizes;
  private final Parameter tokens;
  private final @Nullable Parameter positions;
  private final @Nullable Parameter types;
  private final Part norm;
  private final Part project;
  private final @Nullable RelativeBias bias;

  TextBlock(Description description, Tokens sizes) {
    super(description);
    this.sizes = sizes;
    tokens = table("tokens_weight", sizes.vocabulary());
    int rows = sizes.positions().rows();
    positions = rows == 0 ? null : table("positions_weight", rows);
    types = sizes.types() == 0 ? null : table("types_weight", sizes.types());
    norm = sizes.norm() ? norm("embeddingNorm", sizes.width()) : Part.SAME;
    project =
        sizes.width() == description.width()
            ? Part.SAME
            : dense("project", description.width(), sizes.width(), true);
    int buckets = description.attention().buckets();
    bias =
        buckets == 0
            ? null
            : new RelativeBias(
                parameter(
                    "bias_weight",
                    Parameter.Type.WEIGHT,
                    buckets,
                    description.attention().heads()));
    addLayers(tokens);
  }

  private Parameter table(String name, int rows) {
    return parameter(name, Parameter.Type.WEIGHT, rows, sizes.width());
  }

  public final Tokens text() {
    return sizes;
  }

  @Override
  public final NDList forward(NDList inputs, Pass pass) {
    TextInputs text =
        TextInputs.of(inputs, types == null ? 2 : 3).checked(sizes.vocabulary(), sizes.types());
    return outputs(states(text, pass, null), text, pass);
  }

  /// Returns the last layer's states. With a cache, returns only the state of the last new token,
  /// because only its scores are needed.
  ///
  /// @param cache the cache of the earlier tokens; null for none
  public final NDArray states(TextInputs text, Pass pass, @Nullable KeyValueCache cache) {
    NDArray ids = text.ids();
    long past = cache == null ? 0 : cache.length();
    long length = ids.getShape().get(1);
    long[] pasts = cache == null ? new long[1] : cache.positions();
    NDArray embedded = embedded(text, pasts, pass);
    NDArray like = embedded;
    Map<Integer, Attention.Mask> masks = new HashMap<>();
    NDArray distances = bias == null ? null : bias.of(length, ids.getManager(), pass);
    Shared shared =
        new Shared(
            window ->
                masks.computeIfAbsent(window, each -> mask(each, past, text, distances, like)),
            cache,
            like);
    NDArray states = states(ids, embedded, pass, shared);
    return cache == null ? states : states.get(new NDIndex(":, {}", length - 1));
  }

  private Attention.Mask mask(
      int window, long past, TextInputs text, @Nullable NDArray distances, NDArray like) {
    NDArray ids = text.ids();
    long length = ids.getShape().get(1);
    boolean causal = description().causal();
    boolean plain = text.mask() == null && distances == null && past == 0;
    if (causal && plain && (window == 0 || window >= length)) {
      return new Attention.Mask(null, length > 1);
    }
    NDArray hidden =
        Attention.mask(
            causal, window, past, length, text.mask(), sizes.blank(), ids.getManager(), like);
    if (distances == null) {
      return new Attention.Mask(hidden, false);
    }
    return new Attention.Mask(hidden == null ? distances : distances.add(hidden), false);
  }

  private NDArray embedded(TextInputs text, long[] pasts, Pass pass) {
    NDArray table = pass.value(tokens);
    NDArray embedded = Attention.rows(table, text.ids());
    if (sizes.scale() != 1) {
      embedded = embedded.mul(Attention.cast(number(text.ids(), sizes.scale()), table));
    }
    if (types != null) {
      embedded = embedded.add(typed(pass.value(types), text.types()));
    }
    if (positions != null) {
      embedded = embedded.add(placed(pass.value(positions), text, pasts));
    }
    embedded = norm.of(embedded, pass);
    if (sizes.blank() && text.mask() != null) {
      NDArray some = text.mask().neq(0).toType(DataType.FLOAT32, false).expandDims(2);
      embedded = embedded.mul(Attention.cast(some, embedded));
    }
    return project.of(embedded, pass);
  }

  private NDArray placed(NDArray table, TextInputs text, long... pasts) {
    Positions kind = sizes.positions();
    int length = (int) text.ids().getShape().get(1);
    long to = Arrays.stream(pasts).max().orElseThrow() + length;
    // In a batch, texts that have ended are still computed beside the others.
    if (to > kind.longest() && pasts.length == 1) {
      throw new MisuseException(
          "the text must have at most " + kind.longest() + " tokens (has " + to + ")");
    }
    if (kind.padding() < 0) {
      long[] places = new long[pasts.length * length];
      Arrays.setAll(places, i -> Math.clamp(pasts[i / length] + i % length, 0, kind.longest() - 1));
      return Attention.rows(
          table, text.ids().getManager().create(places, new Shape(pasts.length, length)));
    }
    long[][] ids = text.rows();
    long[] places = new long[Math.toIntExact(text.ids().size())];
    int place = 0;
    for (long[] row : ids) {
      int next = kind.padding();
      for (long id : row) {
        places[place++] = id == kind.padding() ? id : ++next;
      }
    }
    return Attention.rows(table, text.ids().getManager().create(places, text.ids().getShape()));
  }

  private static NDArray typed(NDArray table, @Nullable NDArray types) {
    return types == null
        ? table.get(new NDIndex("0:1")).expandDims(0)
        : Attention.rows(table, types);
  }

  @Override
  public final List<Shape> outputShapes(Shape input) {
    return outputShapes(input, input);
  }
}
