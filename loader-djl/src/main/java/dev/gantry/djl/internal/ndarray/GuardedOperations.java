// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.internal.NDArrayEx;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;

/// The operations that DJL's blocks call on an array of any dtype. This class has the operations
/// that would reach DJL's native code with a dtype that it does not know. [GuardedClasses] adds
/// the others, which call DJL's own and guard the results.
abstract class GuardedOperations implements NDArrayEx {
  final GantryNDArray array;
  final NDArrayEx plain;

  /// @param plain DJL's own operations of `array`
  GuardedOperations(GantryNDArray array, NDArrayEx plain) {
    this.array = array;
    this.plain = plain;
  }

  final NDArray result(NDArray made) {
    return array.result(made);
  }

  final NDList result(NDList made) {
    return array.result(made);
  }

  /// @throws dev.gantry.core.MisuseException if other processes read the array's memory
  final void requireWritable() {
    array.requireWritable();
  }

  /// DJL resizes in FLOAT32 and casts back, which fails for a type that it does not know; so types
  /// other than FLOAT32 are cast here.
  @Override
  public NDArray resize(int width, int height, int interpolation) {
    DataType type = array.getDataType();
    if (type == DataType.FLOAT32) {
      return result(plain.resize(width, height, interpolation));
    }
    try (PtNDArray floats = array.toType(DataType.FLOAT32, true);
        PtNDArray resized =
            Guards.guard(floats.getNDArrayInternal().resize(width, height, interpolation))) {
      return resized.toType(type, true);
    }
  }

  @Override
  public NDArray rdiv(Number n) {
    return rdiv(number(n));
  }

  @Override
  public NDArray rdivi(Number n) {
    return rdivi(number(n));
  }

  @Override
  public NDArray rmod(Number n) {
    return rmod(number(n));
  }

  @Override
  public NDArray rmodi(Number n) {
    return rmodi(number(n));
  }

  @Override
  public NDArray rpow(Number n) {
    return number(n).pow(array);
  }

  /// Checks the inputs of an optimizer's step, which changes all of them but the gradient, the
  /// second.
  static void requireWritable(NDList inputs) {
    for (NDArray input : inputs) {
      if (input instanceof GantryNDArray guarded) {
        guarded.requireWritable();
      }
    }
  }

  /// Makes a scalar of the array's own type. DJL makes the number in a type that it knows, and it
  /// is cast here.
  private NDArray number(Number n) {
    return Guards.guard(array.getManager().create(n)).toType(array.getDataType(), false);
  }

  @Override
  public NDArray getArray() {
    return array;
  }
}
