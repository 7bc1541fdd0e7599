// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A model of texts: an encoder, whose tokens see one another, such as BERT, or a decoder ([DecoderBlock]), whose tokens
/// see those before them. BERT has layer normalization behind each part, which DJL's own `BertBlock` replaces by batch
/// normalization.
///
/// Input: `input_ids`, INT64 `[batch, length]`; then, if you like, `attention_mask` and, for an encoder,
/// `token_type_ids` of that shape: 1 for tokens and 0 for padding, and 0 and 1 for the first and second sentence. That
/// is the order of DJL's tokenizers; arrays that have these names may come in any order.
class TextBlock extends TransformerBlock {
  /// The sizes of a model of texts.
  ///
  /// @param types how many token types there are; 0 for a decoder
  /// @param maxPositions the longest text, in tokens
  /// @param rotation the rotary embedding; null where positions are learned
  /// @param labels how many classes the head tells apart, if it does
  record Sizes(
      Layers layers,
      int vocabulary,
      int types,
      int maxPositions,
      @Nullable Rotation rotation,
      Head head,
      int labels) {
    /// @return a block without values: a load or `initialize` gives them
    TextBlock block() {
      return types == 0 ? new DecoderBlock(this) : new TextBlock(this);
    }

    private int headSize() {
      return switch (head) {
        case NONE, POOLER -> layers.width();
        case TIED, OWN -> vocabulary;
        case SEQUENCE, FIRST, TOKENS -> labels;
      };
    }
  }

  private final Sizes sizes;
  private final Parameter tokens;
  private final @Nullable Parameter positions;
  private final @Nullable Parameter types;
  private final Norm norm;
  private final float @Nullable [] frequencies;

  TextBlock(Sizes sizes) {
    super(sizes.layers(), sizes.head(), sizes.headSize());
    this.sizes = sizes;
    tokens = table("tokens_weight", sizes.vocabulary());
    positions = sizes.rotation() == null ? table("positions_weight", sizes.maxPositions()) : null;
    types = sizes.types() == 0 ? null : table("types_weight", sizes.types());
    addLayers();
    norm = norm("norm");
    Rotation rotation = sizes.rotation();
    frequencies = rotation == null ? null : rotation.frequencies(sizes.layers().headSize());
    addHead(this::scores);
  }

  private Parameter table(String name, int rows) {
    return parameter(name, Parameter.Type.WEIGHT, rows, sizes.layers().width());
  }

  /// Makes the output of token scores. For BERT, which scores masked tokens, a dense layer and a norm come
  /// first.
  private Output scores() {
    Parameter weight = head() == Head.TIED ? tokens : table("head_weight", sizes.vocabulary());
    if (types == null) {
      return new Dense(weight, null)::of;
    }
    int width = sizes.layers().width();
    Dense transform = dense("transform", width, width, true);
    Norm after = norm("transformNorm");
    Dense scores =
        new Dense(weight, parameter("head_bias", Parameter.Type.BIAS, sizes.vocabulary()));
    return (states, pass) -> {
      NDArray transformed = sizes.layers().activation().apply(transform.of(states, pass));
      return scores.of(after.of(transformed, pass), pass);
    };
  }

  final Sizes text() {
    return sizes;
  }

  @Override
  final NDList forward(NDList inputs, Pass pass) {
    TextInputs text = TextInputs.of(inputs, types == null ? 2 : 3);
    text.requireKnown(sizes.vocabulary(), sizes.types());
    return outputs(states(text, pass, null), pass);
  }

  /// The last hidden states, which the head takes.
  ///
  /// @param cache of the tokens before these; null where there are none
  final NDArray states(TextInputs text, Pass pass, @Nullable KeyValueCache cache) {
    NDArray ids = text.ids();
    NDManager manager = ids.getManager();
    NDArray table = pass.value(tokens);
    long past = cache == null ? 0 : cache.length();
    long length = ids.getShape().get(1);
    NDArray embedded = Attention.rows(table, ids);
    if (types != null) {
      embedded = embedded.add(typed(pass.value(types), text.types()));
    }
    if (positions != null) {
      embedded = embedded.add(placed(positions, past, past + length, pass));
    }
    if (types != null) {
      embedded = norm.of(embedded, pass);
      NDArray mask = text.mask() == null ? null : Attention.paddingMask(text.mask(), embedded);
      return states(ids, embedded, pass, new Shared(mask, null, null));
    }
    NDArray mask = Attention.causalMask(manager, past, length, text.mask(), table);
    Rotation.Turn turn =
        frequencies == null
            ? null
            : Rotation.Turn.at(manager, frequencies, past, Math.toIntExact(length), table);
    NDArray states = states(ids, embedded, pass, new Shared(mask, turn, cache));
    // With a cache, only the scores of the last new token are wanted.
    return norm.of(cache == null ? states : states.get(new NDIndex(":, {}", length - 1)), pass);
  }

  private static NDArray typed(NDArray table, @Nullable NDArray types) {
    return types == null
        ? table.get(new NDIndex("0:1")).expandDims(0)
        : Attention.rows(table, types);
  }

  @Override
  final List<Shape> outputShapes(Shape input) {
    return headShapes(input);
  }
}
