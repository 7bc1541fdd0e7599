// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import dev.gantry.djl.internal.ndarray.OperatorArrays;
import dev.gantry.models.internal.blocks.Description.Attending;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The attention of one layer in one pass, and what else blocks compute on arrays of any type.
///
/// DJL's native code knows no BFLOAT16. Operations of a loaded BFLOAT16 array are safe, and so are
/// their results; operations of other arrays with one as operand are not. So here the array that has
/// the weights' type always comes first.
///
/// @param scale by which scores are multiplied
/// @param mask what is hidden from whom
/// @param turn null for no rotary embedding
/// @param distances null if scores do not depend on them
public record Attention(
    Attending kind,
    double scale,
    Mask mask,
    Rotation.@Nullable Turn turn,
    @Nullable DistanceScores distances) {
  /// Says what is hidden from a token.
  ///
  /// @param added to the scores; `[batch or 1, heads or 1, length or 1, all]`, of the states' type; null for nothing
  /// @param causal whether the tokens after it are hidden besides, and nothing is added
  public record Mask(@Nullable NDArray added, boolean causal) {
    static final Mask NOTHING = new Mask(null, false);
  }

  /// Added to a score to make it vanish in the softmax. Where all of a row are hidden, all get the same share: a score
  /// is lost in a number of this size. CUDA's fused kernels multiply it by log₂(e), and give no share where that overflows.
  private static final float HIDDEN = -1e30f;

  /// The same for FLOAT16, in which it is finite.
  private static final float HIDDEN_OF_FLOAT16 = -30_000;

  /// `[batch, length, heads × size]` as `[batch, length, heads, size]`.
  public static NDArray split(NDArray states, int heads) {
    Shape shape = states.getShape();
    return states.reshape(shape.get(0), shape.get(1), heads, shape.get(2) / heads);
  }

  /// This, with scores added before they are multiplied by the scale.
  public Attention with(NDArray scores) {
    NDArray scaled = scores.mul(scale);
    NDArray hidden = mask.added();
    Mask all = new Mask(hidden == null ? scaled : scaled.add(hidden), false);
    return new Attention(kind, scale, all, turn, null);
  }

  /// `[batch, length, heads × size]` as `[batch, heads, length, size]`.
  public static NDArray heads(NDArray states, int heads) {
    return split(states, heads).transpose(0, 2, 1, 3);
  }

  /// `softmax(scale · query · keyᵀ + mask) · value`.
  ///
  /// @param query `[batch, heads, length, size]`
  /// @param key `[batch, groups, all, size]`, as `value`: neighbouring heads share a group's
  /// @param sinks a score of each head that has no value; null for none
  /// @return `[batch, length, heads × size]`
  public NDArray attend(NDArray query, NDArray key, NDArray value, @Nullable NDArray sinks) {
    Optional<NDArray> fused =
        kind.cap() == 0 && sinks == null ? fused(query, key, value) : Optional.empty();
    NDArray result = fused.orElseGet(() -> inSteps(query, key, value, sinks)).transpose(0, 2, 1, 3);
    return result.reshape(result.getShape().get(0), result.getShape().get(1), -1);
  }

  /// A single token of each text goes as one text of a group's heads: they have the same keys.
  private Optional<NDArray> fused(NDArray query, NDArray key, NDArray value) {
    Shape shape = query.getShape();
    long groups = key.getShape().get(1);
    boolean together =
        groups < shape.get(1)
            && shape.get(2) == 1
            && (mask.added() == null || mask.added().getShape().get(1) == 1);
    NDArray asked =
        together ? query.reshape(shape.get(0), groups, shape.get(1) / groups, shape.get(3)) : query;
    return OperatorArrays.attend(asked, key, value, mask.added(), mask.causal(), scale)
        .map(result -> together ? result.reshape(shape) : result);
  }

  private NDArray inSteps(NDArray query, NDArray key, NDArray value, @Nullable NDArray sinks) {
    Shape shape = query.getShape();
    Shape keys = key.getShape();
    // Makes one product for each group, with the queries of the group's heads below one another.
    NDArray scores =
        query
            .mul(scale)
            .reshape(keys.get(0), keys.get(1), -1, keys.get(3))
            .matMul(key.transpose(0, 1, 3, 2))
            .reshape(shape.get(0), shape.get(1), shape.get(2), keys.get(2));
    if (kind.cap() != 0) {
      scores = scores.div(kind.cap()).tanh().mul(kind.cap());
    }
    NDArray hidden =
        mask.causal()
            ? mask(true, 0, 0, shape.get(2), null, false, query.getManager(), query)
            : mask.added();
    NDArray masked = hidden == null ? scores : scores.add(hidden);
    NDArray shares = sinks == null ? softmax(masked) : beside(masked, sinks);
    return shares.reshape(keys.get(0), keys.get(1), -1, keys.get(2)).matMul(value).reshape(shape);
  }

  /// The shares of scores beside those of the sinks.
  private static NDArray beside(NDArray scores, NDArray sinks) {
    Shape shape = scores.getShape();
    NDArray column =
        sinks.reshape(1, -1, 1, 1).broadcast(shape.get(0), shape.get(1), shape.get(2), 1);
    return softmax(NDArrays.concat(new NDList(scores, column), 3))
        .get(new NDIndex("..., :{}", shape.get(3)));
  }

  /// Computes FLOAT16 scores in FLOAT32: their sums would overflow.
  private static NDArray softmax(NDArray scores) {
    return scores.getDataType() == DataType.FLOAT16
        ? scores.toType(DataType.FLOAT32, false).softmax(-1).toType(DataType.FLOAT16, false)
        : scores.softmax(-1);
  }

  /// Says what is hidden from each of `length` tokens.
  ///
  /// @param causal whether those after it are
  /// @param window how far it sees, as [Description.Layer] has it; 0 for all
  /// @param past how many tokens there are before these
  /// @param given `[batch, past + length]`: 1 for a token, 0 for padding
  /// @param blank whether all is hidden from padding
  /// @param like has the type and device of the mask
  /// @return null if nothing is hidden
  public static @Nullable NDArray mask(
      boolean causal,
      int window,
      long past,
      long length,
      @Nullable NDArray given,
      boolean blank,
      NDManager manager,
      NDArray like) {
    long all = past + length;
    boolean narrow = window > 0 && window < all;
    NDArray hidden = given == null ? null : padding(given, blank);
    if (narrow || (causal && length > 1)) {
      NDArray distance =
          manager
              .arange((float) past, (float) all)
              .reshape(1, 1, length, 1)
              .sub(manager.arange(0f, (float) all).reshape(1, 1, 1, all));
      NDArray far = causal ? distance.lt(0) : distance.abs().gte(window);
      far = causal && narrow ? far.logicalOr(distance.gte(window)) : far;
      hidden = hidden == null ? far : far.logicalOr(hidden);
    }
    if (hidden == null) {
      return null;
    }
    float added = like.getDataType() == DataType.FLOAT16 ? HIDDEN_OF_FLOAT16 : HIDDEN;
    return cast(hidden.toType(DataType.FLOAT32, false).mul(added), like);
  }

  private static NDArray padding(NDArray given, boolean blank) {
    Shape shape = given.getShape();
    NDArray padding = given.reshape(shape.get(0), 1, 1, shape.get(1)).eq(0);
    return blank ? padding.logicalOr(padding.transpose(0, 1, 3, 2)) : padding;
  }

  /// The rows of a table.
  ///
  /// @param ids INT64 or INT32, of any shape
  public static NDArray rows(NDArray table, NDArray ids) {
    return table.getNDArrayInternal().embedding(ids, table, SparseFormat.DENSE).singletonOrThrow();
  }

  /// Casts an array of a type that DJL knows to the type of `like`.
  public static NDArray cast(NDArray array, NDArray like) {
    DataType type = like.getDataType();
    if (type != DataType.BFLOAT16 || array.getDataType() == type) {
      return array.toType(type, false);
    }
    // A cast of DJL's own array to BFLOAT16 would end the process, so adds the array to a zero from
    // the
    // loaded array: the sum is a Gantry array, which can be cast.
    NDArray zero = like.reshape(-1).get(new NDIndex("0:1")).zerosLike();
    zero.attach(array.getManager());
    return zero.add(array).toType(type, false);
  }
}
