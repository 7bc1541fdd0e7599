// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.batches.Elements;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/// A [FeatureSpec] in the numbers that decoding goes by: a sample's value is a row of units, of
/// single elements or of steps.
///
/// @param key the name in UTF-8
/// @param steps whether a unit is a step of a feature list
/// @param unitShape of one unit
/// @param most units at most
/// @param exact whether there must be as many
/// @param toLongest whether rows of a batch are as long as its longest, not as `most`
/// @param padding one element, of zeros where nothing is padded
/// @param absent one element of a record that lacks the feature; empty where that is an error or
///     means no units
record FeatureLayout(
    String name,
    MemorySegment key,
    FeatureSpec.Kind kind,
    int elementBytes,
    boolean steps,
    TensorShape unitShape,
    long unitElements,
    long most,
    boolean exact,
    boolean toLongest,
    MemorySegment padding,
    Optional<MemorySegment> absent) {
  static FeatureLayout of(FeatureSpec spec) {
    return switch (spec) {
      case FeatureSpec.FixedLength fixed ->
          of(
              spec,
              false,
              TensorShape.of(),
              elements(fixed.shape()),
              true,
              Optional.empty(),
              0,
              fixed.absent());
      case FeatureSpec.VariableLength variable ->
          of(
              spec,
              false,
              TensorShape.of(),
              variable.most(),
              false,
              Optional.of(variable.padTo()),
              variable.padding(),
              Optional.empty());
      case FeatureSpec.FixedSteps fixed ->
          of(spec, true, fixed.step(), fixed.steps(), true, Optional.empty(), 0, Optional.empty());
      case FeatureSpec.VariableSteps variable ->
          of(
              spec,
              true,
              variable.step(),
              variable.most(),
              false,
              Optional.of(variable.padTo()),
              variable.padding(),
              Optional.empty());
    };
  }

  private static FeatureLayout of(
      FeatureSpec spec,
      boolean steps,
      TensorShape unitShape,
      long most,
      boolean exact,
      Optional<FeatureSpec.PadTo> padTo,
      Number padding,
      Optional<Number> absent) {
    return new FeatureLayout(
        spec.name(),
        MemorySegment.ofArray(spec.name().getBytes(StandardCharsets.UTF_8)),
        spec.kind(),
        spec.dtype().bits() / Byte.SIZE,
        steps,
        unitShape,
        elements(unitShape),
        most,
        exact,
        padTo.filter(FeatureSpec.PadTo.LONGEST::equals).isPresent(),
        Elements.of(spec.name(), spec.dtype(), padding),
        absent.map(each -> Elements.of(spec.name(), spec.dtype(), each)));
  }

  private static long elements(TensorShape shape) {
    return shape.elements().orElseThrow();
  }

  /// Bytes of one unit.
  long unitBytes() {
    return unitElements * elementBytes;
  }
}
