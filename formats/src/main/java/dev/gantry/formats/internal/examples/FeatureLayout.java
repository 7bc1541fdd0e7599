// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.Elements;
import dev.gantry.formats.spi.FieldDecoder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// The numbers that decoding needs of a [FeatureSpec]. A sample's value is a row of units; a unit
/// is one element, or one step of a feature list.
///
/// @param field the largest value of one sample
/// @param steps whether a unit is a step of a feature list
/// @param unitShape the shape of one unit
/// @param most the most units of a row
/// @param exact whether every record must have exactly `most` units
/// @param toLongest whether a batch's rows are as long as its longest row, rather than `most`
/// @param padding one element of padding; zeros if the feature is not padded
/// @param absent the element that fills the row of a record that lacks the feature; empty if such
///     a record is an error or has no units
/// @param decoder makes all units from one string; empty if the record has the units themselves
record FeatureLayout(
    Field field,
    FeatureSpec.Kind kind,
    int elementBytes,
    boolean steps,
    TensorShape unitShape,
    long unitElements,
    long most,
    boolean exact,
    boolean toLongest,
    MemorySegment padding,
    Optional<MemorySegment> absent,
    Optional<FieldDecoder> decoder) {
  static FeatureLayout of(FeatureSpec spec) {
    TensorShape one = TensorShape.of();
    return switch (spec) {
      case FeatureSpec.FixedLength fixed ->
          of(spec, false, one, elements(fixed.shape()), Optional.empty(), 0, fixed.absent());
      case FeatureSpec.Decoded(_, _, TensorShape shape, FieldDecoder decoder) ->
          of(spec, false, one, elements(shape), Optional.empty(), 0, Optional.empty())
              .with(decoder);
      case FeatureSpec.VariableLength(_, _, _, long most, Number padding, var padTo) ->
          of(spec, false, one, most, Optional.of(padTo), padding, Optional.empty());
      case FeatureSpec.FixedSteps fixed ->
          of(spec, true, fixed.step(), fixed.steps(), Optional.empty(), 0, Optional.empty());
      case FeatureSpec.VariableSteps(_, _, _, long most, var step, Number padding, var padTo) ->
          of(spec, true, step, most, Optional.of(padTo), padding, Optional.empty());
    };
  }

  /// @param padTo the length to which rows are padded; empty if every record must have `most`
  ///     units
  private static FeatureLayout of(
      FeatureSpec spec,
      boolean steps,
      TensorShape unitShape,
      long most,
      Optional<FeatureSpec.PadTo> padTo,
      Number padding,
      Optional<Number> absent) {
    return new FeatureLayout(
        spec.field(),
        spec.kind(),
        spec.dtype().bits() / Byte.SIZE,
        steps,
        unitShape,
        elements(unitShape),
        most,
        padTo.isEmpty(),
        padTo.filter(FeatureSpec.PadTo.LONGEST::equals).isPresent(),
        Elements.of(spec.name(), spec.dtype(), padding),
        absent.map(each -> Elements.of(spec.name(), spec.dtype(), each)),
        Optional.empty());
  }

  private FeatureLayout with(FieldDecoder chosen) {
    return new FeatureLayout(
        field,
        kind,
        elementBytes,
        steps,
        unitShape,
        unitElements,
        most,
        exact,
        toLongest,
        padding,
        absent,
        Optional.of(chosen));
  }

  private static long elements(TensorShape shape) {
    return shape.elements().orElseThrow();
  }

  String name() {
    return field.name();
  }

  /// The size of one unit, in bytes.
  long unitBytes() {
    return unitElements * elementBytes;
  }
}
