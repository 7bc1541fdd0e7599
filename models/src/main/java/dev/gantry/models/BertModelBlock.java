// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import dev.gantry.core.MisuseException;
import java.util.List;
import java.util.function.UnaryOperator;

/// BERT as its authors and the hub have it: layer normalization behind each part, which DJL's own
/// `BertBlock` replaces by batch normalization.
///
/// Input: `input_ids`, INT64 `[batch, length]`; then, if you like, `attention_mask` and
/// `token_type_ids` of that shape: 1 for tokens and 0 for padding, and 0 and 1 for the first and
/// second sentence. That is the order of DJL's tokenizers; arrays that have these names may come in
/// any order. Output: see [Head]. There is no dropout, also in training.
public final class BertModelBlock extends TransformerBlock {
  /// What follows the last layer.
  public enum Head {
    /// Outputs the last hidden state `[batch, length, width]`.
    NONE,
    /// Outputs that, and `tanh` of a dense layer of the first token's, `[batch, width]`.
    POOLER,
    /// Outputs `[batch, length, vocabulary]`; the scores are by the embedding's own weights.
    MASKED_TOKENS_TIED,
    /// As the other, by weights of its own.
    MASKED_TOKENS,
    /// Outputs `[batch, labels]`.
    SEQUENCE,
    /// Outputs `[batch, length, labels]`.
    TOKENS
  }

  /// The sizes of a BERT.
  ///
  /// @param types how many token types there are
  /// @param hidden the width of the feed-forward part
  /// @param labels how many classes the head tells apart, if it does
  public record Config(
      int vocabulary,
      int types,
      int width,
      int hidden,
      int layers,
      int heads,
      int maxPositions,
      double epsilon,
      UnaryOperator<NDArray> activation,
      Head head,
      int labels) {
    /// @throws MisuseException if `width` is no multiple of `heads`
    public Config {
      requireMultiple(width, heads);
    }
  }

  /// What makes an output of the states.
  private interface Output {
    NDArray of(NDArray states, Pass pass);
  }

  private final Config config;
  private final Parameter tokens;
  private final Parameter positions;
  private final Parameter types;
  private final Norm norm;
  private final List<Output> outputs;

  /// A block without values: a load or [#initialize] gives them.
  @SuppressWarnings("this-escape")
  public BertModelBlock(Config config) {
    super(layers(config));
    this.config = config;
    int width = config.width();
    tokens = parameter("tokens_weight", Parameter.Type.WEIGHT, config.vocabulary(), width);
    positions = parameter("positions_weight", Parameter.Type.WEIGHT, config.maxPositions(), width);
    types = parameter("types_weight", Parameter.Type.WEIGHT, config.types(), width);
    norm = norm("norm");
    addLayers();
    Output same = (states, _) -> states;
    outputs =
        switch (config.head()) {
          case NONE -> List.of(same);
          case POOLER -> List.of(same, pooler());
          case MASKED_TOKENS_TIED, MASKED_TOKENS -> List.of(maskedTokens());
          case SEQUENCE -> {
            Output pooler = pooler();
            Dense labels = dense("labels", config.labels(), width, true);
            yield List.of((states, pass) -> labels.of(pooler.of(states, pass), pass));
          }
          case TOKENS -> List.of(dense("labels", config.labels(), width, true)::of);
        };
  }

  private static Layers layers(Config config) {
    return Layers.of(
        config.layers(),
        config.width(),
        config.hidden(),
        config.heads(),
        config.epsilon(),
        config.activation(),
        Trait.NORM_BEHIND);
  }

  private Output pooler() {
    Dense pooler = dense("pooler", config.width(), config.width(), true);
    return (states, pass) -> pooler.of(states.get(new NDIndex(":, 0")), pass).tanh();
  }

  private Output maskedTokens() {
    Dense transform = dense("transform", config.width(), config.width(), true);
    Norm after = norm("transformNorm");
    Parameter weight =
        config.head() == Head.MASKED_TOKENS_TIED
            ? tokens
            : parameter(
                "scores_weight", Parameter.Type.WEIGHT, config.vocabulary(), config.width());
    Dense scores =
        new Dense(weight, parameter("scores_bias", Parameter.Type.BIAS, config.vocabulary()));
    return (states, pass) ->
        scores.of(after.of(config.activation().apply(transform.of(states, pass)), pass), pass);
  }

  @Override
  NDList forward(NDList inputs, Pass pass) {
    TextInputs text = TextInputs.of(inputs, 3);
    NDArray embedded = embedded(text, pass);
    NDArray mask = text.mask() == null ? null : Attention.paddingMask(text.mask(), embedded);
    NDArray states = states(text.ids(), embedded, pass, new Shared(mask, null, null));
    NDList results = new NDList();
    for (Output output : outputs) {
      results.add(output.of(states, pass));
    }
    return named(
        switch (config.head()) {
          case NONE, POOLER -> STATES;
          case MASKED_TOKENS_TIED, MASKED_TOKENS, SEQUENCE, TOKENS -> LOGITS;
        },
        results);
  }

  private NDArray embedded(TextInputs text, Pass pass) {
    NDArray ids = text.ids();
    NDArray table = pass.value(types);
    NDArray typed =
        text.types() == null
            ? table.get(new NDIndex("0:1")).expandDims(0)
            : Attention.rows(table, text.types());
    NDArray placed = placed(positions, 0, ids.getShape().get(1), pass);
    return norm.of(Attention.rows(pass.value(tokens), ids).add(typed).add(placed), pass);
  }

  @Override
  List<Shape> outputShapes(Shape input) {
    long batch = input.get(0);
    Shape states = input.add(config.width());
    return switch (config.head()) {
      case NONE -> List.of(states);
      case POOLER -> List.of(states, new Shape(batch, config.width()));
      case MASKED_TOKENS_TIED, MASKED_TOKENS -> List.of(input.add(config.vocabulary()));
      case SEQUENCE -> List.of(new Shape(batch, config.labels()));
      case TOKENS -> List.of(input.add(config.labels()));
    };
  }
}
