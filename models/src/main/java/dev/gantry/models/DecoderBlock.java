// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A language model of transformer layers in which a token sees only those before it: embeddings, layers, a
/// norm, and a head that gives scores.
abstract class DecoderBlock extends TransformerBlock implements CausalBlock {
  private final int vocabulary;
  private final int width;
  private final int maxPositions;
  private final Parameter tokens;
  private final @Nullable Parameter positions;
  private final Norm norm;
  private final @Nullable Dense head;

  /// @param learned whether there are learned positions, which bound the length of a text
  DecoderBlock(
      Layers layers, int vocabulary, int maxPositions, boolean learned, LlamaBlock.Head scores) {
    super(layers);
    this.vocabulary = vocabulary;
    this.width = layers.width();
    this.maxPositions = maxPositions;
    tokens = parameter("tokens_weight", Parameter.Type.WEIGHT, vocabulary, width);
    positions =
        learned ? parameter("positions_weight", Parameter.Type.WEIGHT, maxPositions, width) : null;
    addLayers();
    norm = norm("norm");
    head =
        switch (scores) {
          case NONE -> null;
          case TIED -> new Dense(tokens, null);
          case OWN -> dense("head", vocabulary, width, false);
        };
  }

  @Override
  final NDList forward(NDList inputs, Pass pass) {
    NDArray states = norm.of(states(TextInputs.of(inputs, 2), pass, null), pass);
    return head == null
        ? named(STATES, new NDList(states))
        : named(LOGITS, new NDList(head.of(states, pass)));
  }

  @Override
  public final NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache) {
    if (head == null) {
      throw new MisuseException("this model has no head: it gives states, and no scores of tokens");
    }
    TextInputs text = TextInputs.of(new NDList(ids), 1);
    return kept(
            ids.getManager(),
            () -> {
              Pass pass = pass(store, ids, false);
              NDArray states = states(text, pass, cache);
              NDArray last = states.get(new NDIndex(":, {}", ids.getShape().get(1) - 1));
              return new NDList(head.of(norm.of(last, pass), pass));
            })
        .singletonOrThrow();
  }

  private NDArray states(TextInputs text, Pass pass, @Nullable KeyValueCache cache) {
    NDArray ids = text.ids();
    NDManager manager = ids.getManager();
    NDArray table = pass.value(tokens);
    long past = cache == null ? 0 : cache.length();
    long length = ids.getShape().get(1);
    NDArray embedded = Attention.rows(table, ids);
    if (positions != null) {
      embedded = embedded.add(placed(positions, past, past + length, pass));
    }
    NDArray mask = Attention.causalMask(manager, past, length, text.mask(), table);
    Turn turn = turn(manager, past, Math.toIntExact(length), table);
    return states(ids, embedded, pass, new Shared(mask, turn, cache));
  }

  /// The rotary embedding; null for none.
  ///
  /// @param past how many tokens there are before these
  /// @param like has the type and device of the result
  @Nullable Turn turn(NDManager manager, long past, int length, NDArray like) {
    return null;
  }

  @Override
  public final int vocabularySize() {
    return vocabulary;
  }

  @Override
  public final int maxPositions() {
    return maxPositions;
  }

  @Override
  final List<Shape> outputShapes(Shape input) {
    return List.of(input.add(head == null ? width : vocabulary));
  }
}
