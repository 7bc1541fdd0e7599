// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import java.util.Optional;

/// A feature that is wanted as a field of the same name.
///
/// @param dtype the elements' dtype; empty for U8, F32 or I64, by the feature's kind. Bytes can be any
///     dtype, floats only F32, and integers any integer dtype that has room for them
/// @param shape the shape of one sample's value, which must fill the feature's bytes; if empty, one float
///     or integer is a scalar, and anything else a vector
public record TfRecordField(String feature, Optional<DType> dtype, Optional<TensorShape> shape) {
  /// Wants a feature as it is stored.
  public static TfRecordField of(String feature) {
    return new TfRecordField(feature, Optional.empty(), Optional.empty());
  }

  public static TfRecordField of(String feature, DType dtype, TensorShape shape) {
    return new TfRecordField(feature, Optional.of(dtype), Optional.of(shape));
  }
}
