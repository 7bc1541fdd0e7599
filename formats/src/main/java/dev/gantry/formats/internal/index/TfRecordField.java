// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.spi.FieldDecoder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.util.Optional;

/// A feature that is wanted as a field of the same name.
///
/// @param dtype the elements' dtype; empty for U8, F32 or I64, by the feature's kind. Bytes can be any
///     dtype, floats only F32, and integers any integer dtype that has room for them
/// @param shape the shape of one sample's value, which must fill the feature's bytes; if empty, one float
///     or integer is a scalar, and anything else a vector
/// @param decoder turns each record's bytes, of any length, into the value; empty for values as they are stored
public record TfRecordField(
    String feature,
    Optional<DType> dtype,
    Optional<TensorShape> shape,
    Optional<FieldDecoder> decoder) {
  public TfRecordField(String feature, Optional<DType> dtype, Optional<TensorShape> shape) {
    this(feature, dtype, shape, Optional.empty());
  }

  /// Wants a feature as it is stored.
  public static TfRecordField of(String feature) {
    return new TfRecordField(feature, Optional.empty(), Optional.empty());
  }

  /// Wants the value that a decoder makes of a feature.
  public static TfRecordField of(FeatureSpec.Decoded feature) {
    return new TfRecordField(
        feature.name(),
        Optional.of(feature.dtype()),
        Optional.of(feature.shape()),
        Optional.of(feature.decoder()));
  }

  public static TfRecordField of(String feature, DType dtype, TensorShape shape) {
    return new TfRecordField(feature, Optional.of(dtype), Optional.of(shape));
  }
}
