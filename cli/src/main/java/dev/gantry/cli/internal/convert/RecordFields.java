// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.input.RecordFiles;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.Schema;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// Finds the fields that the features of TFRecord files become. A field has the same size in all
/// records.
///
/// @param chosen the dtypes and shapes that the user has chosen for some features
/// @param pad whether shorter and missing features are padded; each such field is followed by a
///     field with the original lengths
public record RecordFields(List<Location> files, List<FieldType> chosen, boolean pad) {
  /// Derives the fields from the first record, whose form all records must have; with `pad`, from
  /// all records.
  ///
  /// @throws MalformedFileException if there is no record, or no feature of the first record can
  ///     be a field
  /// @throws MisuseException if a chosen dtype or shape does not fit its feature
  List<FeatureSpec> specs(GantrySession session) {
    List<FeatureSpec> found =
        Schema.infer(session, files, RecordFiles.OPTIONS, pad ? Long.MAX_VALUE : 1);
    if (found.isEmpty()) {
      throw new MalformedFileException(
          files.getFirst(), 0, "no-features", "the records have no feature that can be a field");
    }
    requireFound(found);
    List<FeatureSpec> specs = new ArrayList<>();
    for (FeatureSpec feature : found) {
      FeatureSpec all = filledUp(feature);
      specs.add(
          chosen.stream()
              .filter(type -> type.name().equals(feature.name()))
              .findFirst()
              .map(type -> typed(all, type))
              .orElse(all));
    }
    return specs;
  }

  private void requireFound(List<FeatureSpec> found) {
    Set<String> names = new HashSet<>();
    for (FieldType type : chosen) {
      if (found.stream().noneMatch(feature -> feature.name().equals(type.name()))) {
        throw new MisuseException(
            "--field: the records have no feature '%s'; their features are %s"
                .formatted(type.name(), found.stream().map(FeatureSpec::name).toList()));
      }
      if (!names.add(type.name())) {
        throw new MisuseException("--field: '" + type.name() + "' is given twice");
      }
    }
  }

  /// Pads a feature to its longest record, since every sample of a field has the same shape.
  private static FeatureSpec filledUp(FeatureSpec feature) {
    return switch (feature) {
      case FeatureSpec.FixedLength _, FeatureSpec.FixedSteps _, FeatureSpec.Decoded _ -> feature;
      case FeatureSpec.VariableLength(var name, var kind, var dtype, var most, var padding, _) ->
          new FeatureSpec.VariableLength(name, kind, dtype, most, padding, FeatureSpec.PadTo.MOST);
      case FeatureSpec.VariableSteps(
              var name,
              var kind,
              var dtype,
              var most,
              var step,
              var padding,
              _) ->
          new FeatureSpec.VariableSteps(
              name, kind, dtype, most, step, padding, FeatureSpec.PadTo.MOST);
    };
  }

  private static FeatureSpec typed(FeatureSpec feature, FieldType type) {
    if (!(feature instanceof FeatureSpec.FixedLength fixed)) {
      throw new MisuseException(
          "--field: '" + type.name() + "' varies in length, or is a list of steps");
    }
    FeatureSpec typed =
        new FeatureSpec.FixedLength(
            type.name(), fixed.kind(), type.dtype(), type.shape(), fixed.absent());
    if (typed.field().sampleBytes() != fixed.field().sampleBytes()) {
      throw new MisuseException(
          "--field: '%s' has %s bytes, but %s %s has %s"
              .formatted(
                  type.name(),
                  fixed.field().sampleBytes(),
                  type.dtype(),
                  type.shape(),
                  typed.field().sampleBytes()));
    }
    return typed;
  }
}
