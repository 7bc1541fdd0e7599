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
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/// A mixture of experts: the router scores them for each token, and the best compute, each for the tokens that have it.
/// Which these are is copied to the host once a layer.
public final class ExpertsFeed implements Part {
  /// What bounds gpt-oss's gate and its counterpart, and how steep its gate is.
  private static final double BOUND = 7;

  private static final double STEEPNESS = 1.702;

  private final Experts kind;
  private final Dense router;
  private final List<Part> experts;

  private ExpertsFeed(Experts kind, Dense router, List<Part> experts) {
    this.kind = kind;
    this.router = router;
    this.experts = experts;
  }

  /// @param name of the layer's parameters
  public static ExpertsFeed of(TransformerBlock block, String name, Description description) {
    Experts kind = Objects.requireNonNull(description.feedForward().experts());
    Dense router = block.dense(name + "router", kind.count(), description.width(), kind.stacked());
    List<Part> experts =
        kind.stacked() ? stacked(block, name, description.width(), kind) : new ArrayList<>();
    if (!kind.stacked()) {
      for (int i = 0; i < kind.count(); i++) {
        experts.add(block.feed(name + "expert" + i + "_", kind.hidden()));
      }
    }
    return new ExpertsFeed(kind, router, experts);
  }

  private static List<Part> stacked(TransformerBlock block, String name, int width, Experts kind) {
    int hidden = kind.hidden();
    int count = kind.count();
    Parameter.Type weight = Parameter.Type.WEIGHT;
    Parameter up = block.parameter(name + "experts_up_weight", weight, count, width, 2L * hidden);
    Parameter upBias =
        block.parameter(name + "experts_up_bias", Parameter.Type.BIAS, count, 2L * hidden);
    Parameter down = block.parameter(name + "experts_down_weight", weight, count, hidden, width);
    Parameter downBias =
        block.parameter(name + "experts_down_bias", Parameter.Type.BIAS, count, width);
    List<Part> experts = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      NDIndex index = new NDIndex(i);
      experts.add((x, pass) -> {
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
      });
    }
    return experts;
  }

  @Override
  public NDArray of(NDArray x, Pass pass) {
    Shape shape = x.getShape();
    NDArray tokens = x.reshape(-1, shape.get(shape.dimension() - 1));
    NDArray scores = router.of(tokens, pass).toType(DataType.FLOAT32, false);
    // The highest shares are those of the highest scores. Shares that add up to one are the softmax
    // of these.
    NDList best = (kind.normalized() ? scores : scores.softmax(-1)).topK(kind.chosen(), 1);
    NDArray shares = kind.normalized() ? best.get(0).softmax(-1) : best.get(0);
    long[] chosen = best.get(1).toType(DataType.INT64, false).toLongArray();
    NDList results = new NDList();
    long[] places = new long[chosen.length];
    int done = 0;
    for (int expert = 0; expert < experts.size(); expert++) {
      int from = done;
      for (int i = 0; i < chosen.length; i++) {
        if (chosen[i] == expert) {
          places[i] = done++;
        }
      }
      if (done > from) {
        long[] rows = new long[done - from];
        for (int i = 0, row = 0; i < chosen.length; i++) {
          if (chosen[i] == expert) {
            rows[row++] = i / kind.chosen();
          }
        }
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
