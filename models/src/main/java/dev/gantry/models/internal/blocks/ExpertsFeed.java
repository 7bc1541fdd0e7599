// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Parameter;
import dev.gantry.models.internal.blocks.Description.Experts;
import dev.gantry.models.internal.blocks.NamedBlock.Dense;
import dev.gantry.models.internal.blocks.NamedBlock.Part;
import dev.gantry.models.internal.blocks.NamedBlock.Pass;
import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/// A mixture of experts. For each token, the router scores the experts and the best ones are
/// chosen; each expert then computes the tokens that it was chosen for. The choice is copied to
/// the host once a layer.
///
/// @param experts one expert for each row of the router
public record ExpertsFeed(Experts kind, Dense router, List<Part> experts) implements Part {
  /// The bound of gpt-oss's gate and of its counterpart; `STEEPNESS` is the gate's factor in the
  /// sigmoid.
  private static final double BOUND = 7;

  private static final double STEEPNESS = 1.702;

  /// @param name the prefix of the layer's parameters
  public static ExpertsFeed of(TransformerBlock block, String name, Description description) {
    Experts kind = Objects.requireNonNull(description.feedForward().experts());
    Dense router = block.dense(name + "router", kind.count(), description.width(), kind.stacked());
    IntFunction<Part> each =
        kind.stacked()
            ? stacked(block, name + "experts_", description.width(), kind)
            : i -> block.feed(name + "expert" + i + "_", kind.hidden());
    return new ExpertsFeed(kind, router, IntStream.range(0, kind.count()).mapToObj(each).toList());
  }

  private static IntFunction<Part> stacked(
      TransformerBlock block, String name, long width, Experts kind) {
    long hidden = kind.hidden();
    long count = kind.count();
    Parameter.Type weight = Parameter.Type.WEIGHT;
    Parameter.Type bias = Parameter.Type.BIAS;
    Parameter up = block.parameter(name + "up_weight", weight, count, width, 2 * hidden);
    Parameter upBias = block.parameter(name + "up_bias", bias, count, 2 * hidden);
    Parameter down = block.parameter(name + "down_weight", weight, count, hidden, width);
    Parameter downBias = block.parameter(name + "down_bias", bias, count, width);
    return i -> {
      NDIndex index = new NDIndex(i);
      return (x, pass) -> {
        NDArray both =
            x.matMul(pass.value(up).get(index))
                .add(pass.value(upBias).get(index))
                .reshape(x.getShape().get(0), hidden, 2);
        NDArray gate = both.get(new NDIndex("..., 0")).minimum(BOUND);
        NDArray other = both.get(new NDIndex("..., 1")).clip(-BOUND, BOUND);
        NDArray gated = gate.mul(Activation.sigmoid(gate.mul(STEEPNESS)));
        return other
            .add(1)
            .mul(gated)
            .matMul(pass.value(down).get(index))
            .add(pass.value(downBias).get(index));
      };
    };
  }

  @Override
  public NDArray of(NDArray x, Pass pass) {
    Shape shape = x.getShape();
    NDArray tokens = x.reshape(-1, shape.get(shape.dimension() - 1));
    NDArray scores = router.of(tokens, pass).toType(DataType.FLOAT32, false);
    // The experts with the highest probabilities have the highest scores. Normalised weights are
    // the softmax of the chosen scores alone.
    NDList best = (kind.normalized() ? scores : scores.softmax(-1)).topK(kind.chosen(), 1);
    NDArray shares = kind.normalized() ? best.get(0).softmax(-1) : best.get(0);
    long[] chosen = best.get(1).toType(DataType.INT64, false).toLongArray();
    NDList results = new NDList();
    long[] places = new long[chosen.length];
    int done = 0;
    for (int expert = 0; expert < experts.size(); expert++) {
      int of = expert;
      int[] at = IntStream.range(0, chosen.length).filter(i -> chosen[i] == of).toArray();
      for (int place : at) {
        places[place] = done++;
      }
      if (at.length > 0) {
        long[] rows = IntStream.of(at).mapToLong(i -> i / kind.chosen()).toArray();
        results.add(experts.get(expert).of(rows(tokens, rows), pass));
      }
    }
    NDArray all = rows(NDArrays.concat(results, 0), places);
    return all.reshape(tokens.getShape().get(0), kind.chosen(), -1)
        .mul(Attention.cast(shares, all).expandDims(2))
        .sum(new int[] {1})
        .reshape(shape);
  }

  private static NDArray rows(NDArray table, long... rows) {
    return Attention.rows(table, table.getManager().create(rows, new Shape(rows.length)));
  }
}
