// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import org.jspecify.annotations.Nullable;

/// Computes what all transformer blocks need: attention, its masks, look-ups in tables and casts.
///
/// DJL's native code knows no BFLOAT16. Operations of a loaded BFLOAT16 array are safe, and so are
/// their results; operations of other arrays with one as operand are not. So here the array that has
/// the weights' type always comes first.
final class Attention {
  /// Added to a score to make it vanish in the softmax; it is finite in FLOAT16.
  private static final float HIDDEN = -30_000;

  private Attention() {}

  /// `[batch, length, heads × size]` as `[batch, heads, length, size]`.
  static NDArray heads(NDArray states, int heads) {
    Shape shape = states.getShape();
    return states
        .reshape(shape.get(0), shape.get(1), heads, shape.get(2) / heads)
        .transpose(0, 2, 1, 3);
  }

  /// `softmax(scale · query · keyᵀ + mask) · value`.
  ///
  /// @param query `[batch, heads, length, size]`
  /// @param key `[batch, groups, all, size]`, as `value`: neighbouring heads share a group's
  /// @param scale a scalar
  /// @param mask `[batch or 1, 1, length or 1, all]`, of the query's type
  /// @return `[batch, length, heads × size]`
  static NDArray attend(
      NDArray query, NDArray key, NDArray value, NDArray scale, @Nullable NDArray mask) {
    Shape shape = query.getShape();
    long batch = shape.get(0);
    long heads = shape.get(1);
    long length = shape.get(2);
    long size = shape.get(3);
    long groups = key.getShape().get(1);
    long all = key.getShape().get(2);
    // Makes one product for each group, with the queries of the group's heads below one another.
    NDArray scores =
        query
            .mul(scale)
            .reshape(batch, groups, heads / groups * length, size)
            .matMul(key.transpose(0, 1, 3, 2))
            .reshape(batch, heads, length, all);
    NDArray shares = softmax(mask == null ? scores : scores.add(mask));
    return shares
        .reshape(batch, groups, heads / groups * length, all)
        .matMul(value)
        .reshape(batch, heads, length, size)
        .transpose(0, 2, 1, 3)
        .reshape(batch, length, heads * size);
  }

  /// Computes FLOAT16 scores in FLOAT32: their sums would overflow.
  private static NDArray softmax(NDArray scores) {
    return scores.getDataType() == DataType.FLOAT16
        ? scores.toType(DataType.FLOAT32, false).softmax(-1).toType(DataType.FLOAT16, false)
        : scores.softmax(-1);
  }

  /// Hides from each of `length` tokens those after it, and those that `given` hides.
  ///
  /// @param past how many tokens there are before these
  /// @param given `[batch, past + length]`: 1 for a token, 0 for padding
  /// @param like has the type and device of the mask
  /// @return null if nothing is hidden
  static @Nullable NDArray causalMask(
      NDManager manager, long past, long length, @Nullable NDArray given, NDArray like) {
    if (length == 1 && given == null) {
      return null;
    }
    long all = past + length;
    NDArray columns = manager.arange(0f, (float) all).reshape(1, 1, 1, all);
    NDArray rows = manager.arange((float) past, (float) all).reshape(1, 1, length, 1);
    NDArray later = columns.gt(rows);
    return hiding(given == null ? later : later.logicalOr(padding(given)), like);
  }

  /// Hides padding.
  ///
  /// @param given `[batch, length]`: 1 for a token, 0 for padding
  /// @param like has the type of the mask
  static NDArray paddingMask(NDArray given, NDArray like) {
    return hiding(padding(given), like);
  }

  private static NDArray padding(NDArray given) {
    Shape shape = given.getShape();
    return given.reshape(shape.get(0), 1, 1, shape.get(1)).eq(0);
  }

  private static NDArray hiding(NDArray hidden, NDArray like) {
    return cast(hidden.toType(DataType.FLOAT32, false).mul(HIDDEN), like);
  }

  /// The rows of a table.
  ///
  /// @param ids INT64 or INT32, of any shape
  static NDArray rows(NDArray table, NDArray ids) {
    return table.getNDArrayInternal().embedding(ids, table, SparseFormat.DENSE).singletonOrThrow();
  }

  /// Casts an array of a type that DJL knows to the type of `like`.
  static NDArray cast(NDArray array, NDArray like) {
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
