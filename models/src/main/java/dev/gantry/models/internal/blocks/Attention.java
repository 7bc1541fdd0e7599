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

/// The attention of one layer in one forward pass, and helpers for arrays of any type.
///
/// DJL's native code does not know BFLOAT16. Operations of a loaded BFLOAT16 array are safe, and
/// so are operations of their results. An operation of another array with a BFLOAT16 operand is
/// not. For that reason the array that has the type of the weights always comes first here.
///
/// @param scale the factor of the scores
/// @param mask says which tokens are hidden from which
/// @param turn the rotary embedding; null for none
/// @param distances the scores by distance; null for none
public record Attention(
    Attending kind,
    double scale,
    Mask mask,
    Rotation.@Nullable Turn turn,
    @Nullable DistanceScores distances) {
  /// Says which tokens are hidden from a token.
  ///
  /// @param added is added to the scores, `[batch or 1, heads or 1, length or 1, all]`, of the
  ///     states' type; null for nothing
  /// @param causal whether later tokens are hidden; in that case `added` is null
  public record Mask(@Nullable NDArray added, boolean causal) {
    static final Mask NOTHING = new Mask(null, false);
  }

  /// Added to a score to hide a token in the softmax. If a whole row is hidden, all its tokens get
  /// the same weight, because the scores are lost in the rounding of so large a number. CUDA's
  /// fused kernels multiply the number by log₂(e); if that overflowed, the row would get no
  /// weights.
  private static final float HIDDEN = -1e30f;

  /// The same for FLOAT16, whose range is smaller.
  private static final float HIDDEN_OF_FLOAT16 = -30_000;

  /// Reshapes `[batch, length, heads × size]` to `[batch, length, heads, size]`.
  public static NDArray split(NDArray states, int heads) {
    Shape shape = states.getShape();
    return states.reshape(shape.get(0), shape.get(1), heads, shape.get(2) / heads);
  }

  /// Returns this attention with further scores, which are added before the scale is applied.
  public Attention with(NDArray scores) {
    NDArray scaled = scores.mul(scale);
    NDArray hidden = mask.added();
    Mask all = new Mask(hidden == null ? scaled : scaled.add(hidden), false);
    return new Attention(kind, scale, all, turn, null);
  }

  /// Reshapes and transposes `[batch, length, heads × size]` to `[batch, heads, length, size]`.
  public static NDArray heads(NDArray states, int heads) {
    return split(states, heads).transpose(0, 2, 1, 3);
  }

  /// Computes `softmax(scale · query · keyᵀ + mask) · value`.
  ///
  /// @param query `[batch, heads, length, size]`
  /// @param key `[batch, groups, all, size]`; `value` has the same shape. Neighbouring heads share
  ///     a group
  /// @param sinks a score for each head that takes part in the softmax and has no value; null for
  ///     none
  /// @return `[batch, length, heads × size]`
  public NDArray attend(NDArray query, NDArray key, NDArray value, @Nullable NDArray sinks) {
    Optional<NDArray> fused =
        kind.cap() == 0 && sinks == null ? fused(query, key, value) : Optional.empty();
    NDArray result = fused.orElseGet(() -> inSteps(query, key, value, sinks)).transpose(0, 2, 1, 3);
    return result.reshape(result.getShape().get(0), result.getShape().get(1), -1);
  }

  /// If each text has a single token, the heads of a group are passed as the tokens of one text,
  /// because they have the same keys.
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
    // There is one product for each group; the queries of the group's heads are its rows.
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

  /// Returns the softmax of the scores and the sinks, without the sinks' weights.
  private static NDArray beside(NDArray scores, NDArray sinks) {
    Shape shape = scores.getShape();
    NDArray column =
        sinks.reshape(1, -1, 1, 1).broadcast(shape.get(0), shape.get(1), shape.get(2), 1);
    return softmax(NDArrays.concat(new NDList(scores, column), 3))
        .get(new NDIndex("..., :{}", shape.get(3)));
  }

  /// Computes the softmax of FLOAT16 scores in FLOAT32, because their sums would overflow.
  private static NDArray softmax(NDArray scores) {
    return scores.getDataType() == DataType.FLOAT16
        ? scores.toType(DataType.FLOAT32, false).softmax(-1).toType(DataType.FLOAT16, false)
        : scores.softmax(-1);
  }

  /// Returns the mask that hides tokens from each of `length` tokens.
  ///
  /// @param causal whether later tokens are hidden
  /// @param window how far a token sees, as in [Description.Layer]; 0 for all tokens
  /// @param past how many tokens come before these tokens
  /// @param given 1 for a token and 0 for padding, `[batch, past + length]`; null if nothing is
  ///     padded
  /// @param blank whether all tokens are hidden from padding
  /// @param like an array that has the type and device of the mask
  /// @return the mask; null if nothing is hidden
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

  /// Returns the rows of a table with these numbers.
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
    // Casting DJL's own array to BFLOAT16 would end the process. Instead the array is added to a
    // zero of the loaded array: the sum is a Gantry array, which can be cast.
    NDArray zero = like.reshape(-1).get(new NDIndex("0:1")).zerosLike();
    zero.attach(array.getManager());
    return zero.add(array).toType(type, false);
  }
}
