// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import java.util.Optional;

/// A feature that is wanted as a field of that name.
///
/// @param dtype what its bytes are; empty for U8, F32 or I64, by its kind. Only bytes can be
///     anything; floats are F32, and integers any dtype of integers that has room for them
/// @param shape of one sample's value, which must fill the feature's bytes; empty for a scalar
///     where there is one float or integer, else a vector
public record TfRecordField(String feature, Optional<DType> dtype, Optional<TensorShape> shape) {
  /// As it is stored.
  public static TfRecordField of(String feature) {
    return new TfRecordField(feature, Optional.empty(), Optional.empty());
  }

  public static TfRecordField of(String feature, DType dtype, TensorShape shape) {
    return new TfRecordField(feature, Optional.of(dtype), Optional.of(shape));
  }
}
