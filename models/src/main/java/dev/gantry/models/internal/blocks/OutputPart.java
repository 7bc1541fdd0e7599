// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import dev.gantry.models.internal.blocks.Description.Labels;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.Scores;
import dev.gantry.models.internal.blocks.Description.Stem;
import dev.gantry.models.internal.blocks.Description.Vocabulary;
import dev.gantry.models.internal.blocks.NamedBlock.Dense;
import dev.gantry.models.internal.blocks.NamedBlock.Part;
import dev.gantry.models.internal.blocks.NamedBlock.Pass;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Computes one output from the last hidden states.
public final class OutputPart {
  private final Output output;
  private final int width;
  private final @Nullable ProbePool probe;
  private final Part stem;
  private final Part scores;

  /// @param tokens the embedding's table, to which the scores may be tied; null for none
  public OutputPart(TransformerBlock block, Output output, @Nullable Parameter tokens) {
    this.output = output;
    probe = output.pool() == Pool.PROBE ? ProbePool.of(block) : null;
    int states = block.description().width() * (output.pool() == Pool.FIRST_AND_MEAN ? 2 : 1);
    Stem before = output.stem();
    stem = before == null ? Part.SAME : stem(block, before, states);
    int stemmed = before == null ? states : before.width();
    scores = scores(block, output.scores(), stemmed, tokens);
    width =
        switch (output.scores()) {
          case null -> stemmed;
          case Labels labels -> labels.count();
          case Vocabulary _ -> vocabulary(block);
        };
  }

  private static int vocabulary(TransformerBlock block) {
    return ((Description.Tokens) block.description().embedding()).vocabulary();
  }

  private static Part stem(TransformerBlock block, Stem kind, int inputs) {
    Dense dense = block.dense(kind.name(), kind.width(), inputs, kind.bias());
    Part norm = kind.norm() ? block.norm(kind.name() + "Norm", kind.width()) : Part.SAME;
    return (x, pass) -> norm.of(kind.activation().apply(dense.of(x, pass)), pass);
  }

  private static Part scores(
      TransformerBlock block, @Nullable Scores scores, int inputs, @Nullable Parameter tokens) {
    return switch (scores) {
      case null -> Part.SAME;
      case Labels labels -> block.dense(labels.name(), labels.count(), inputs, labels.bias());
      case Vocabulary words -> {
        int size = vocabulary(block);
        Parameter weight =
            words.tied() && tokens != null
                ? tokens
                : block.parameter("head_weight", Parameter.Type.WEIGHT, size, inputs);
        Parameter bias =
            words.bias() ? block.parameter("head_bias", Parameter.Type.BIAS, size) : null;
        Dense dense = new Dense(weight, bias);
        yield (x, pass) -> {
          NDArray result = dense.of(x, pass);
          result = words.divisor() == 1 ? result : result.div(words.divisor());
          return words.cap() == 0 ? result : result.div(words.cap()).tanh().mul(words.cap());
        };
      }
    };
  }

  /// @param states the last hidden states, `[batch, length, width]`
  /// @param normed the same states after the last norm
  public NDList of(NDArray states, NDArray normed, TextInputs text, Pass pass) {
    NDArray pooled = pooled(output.pool() == Pool.UNNORMED ? states : normed, text, pass);
    NDArray result = scores.of(stem.of(pooled, pass), pass);
    NDList results = new NDList();
    for (int i = 0; i < output.names().size(); i++) {
      results.add(isApart() ? result.get(new NDIndex("..., {}", i)) : result);
    }
    return NamedBlock.named(output.names(), results);
  }

  private NDArray pooled(NDArray states, TextInputs text, Pass pass) {
    return switch (output.pool()) {
      case ALL, UNNORMED -> states;
      case FIRST -> states.get(new NDIndex(":, 0"));
      case LAST -> at(states, text.rows(output.token()));
      case FINAL -> states.get(new NDIndex(":, -1"));
      case END -> at(states, text.rows());
      case MEAN -> mean(states, text);
      case PROBE -> Objects.requireNonNull(probe).of(states, pass);
      case FIRST_AND_MEAN ->
          NDArrays.concat(
              new NDList(
                  states.get(new NDIndex(":, 0")),
                  states.get(new NDIndex(":, 1:")).mean(new int[] {1})),
              1);
    };
  }

  private static NDArray mean(NDArray states, TextInputs text) {
    if (text.mask() == null) {
      return states.mean(new int[] {1});
    }
    NDArray mask =
        Attention.cast(text.mask().toType(DataType.FLOAT32, false), states).expandDims(2);
    return states.mul(mask).sum(new int[] {1}).div(mask.sum(new int[] {1}));
  }

  private NDArray at(NDArray states, long[]... ids) {
    Shape shape = states.getShape();
    long[] rows = new long[ids.length];
    Arrays.setAll(rows, i -> i * shape.get(1) + place(ids[i]));
    return Attention.rows(
        states.reshape(-1, shape.get(2)), states.getManager().create(rows, new Shape(rows.length)));
  }

  /// Returns the index of the last token that is not padding, or of the first token that ends a
  /// text; 0 if there is none. If the end token's id is 2, the reference takes the highest id
  /// instead, since its old files name a wrong end token.
  private int place(long... ids) {
    IntStream places = IntStream.range(0, ids.length);
    if (output.pool() == Pool.LAST) {
      return places.filter(i -> ids[i] != output.token()).max().orElse(0);
    }
    return output.token() == 2
        ? places.reduce((best, i) -> ids[i] > ids[best] ? i : best).orElse(0)
        : places.filter(i -> ids[i] == output.token()).findFirst().orElse(0);
  }

  /// Whether each label's scores are an output of their own.
  private boolean isApart() {
    return output.names().size() > 1 || (output.scores() instanceof Labels labels && labels.bare());
  }

  /// @param tokens `[batch, length]`
  public List<Shape> shapes(Shape tokens) {
    boolean all = output.pool() == Pool.ALL || output.pool() == Pool.UNNORMED;
    Shape pooled = all ? tokens : new Shape(tokens.get(0));
    return Collections.nCopies(output.names().size(), isApart() ? pooled : pooled.add(width));
  }
}
