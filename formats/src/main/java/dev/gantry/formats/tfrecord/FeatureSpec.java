package dev.gantry.formats.tfrecord;

import dev.gantry.core.DType;
import dev.gantry.core.Shape;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// How a feature of an example becomes a field of a batch.
///
/// A feature of kind [FeatureKind#BYTES] is one string of bytes, which holds the elements of the
/// dtype one after the other, little endian: of U8 they are the bytes themselves. Other kinds have
/// their own dtype only. Numbers for padding are given to the dtype's range. Beside a field that is
/// padded there is one of its lengths, unless another feature has that name.
public sealed interface FeatureSpec {
  /// What the name of a [#lengthField] ends in.
  String LENGTH_SUFFIX = "_length";

  String name();

  FeatureKind kind();

  DType dtype();

  /// The largest value of one sample, as a field of its name.
  Field field();

  /// How long each sample's value is without its padding, in elements or in steps, as a field named
  /// after the feature; empty where nothing is padded.
  default Optional<Field> lengthField() {
    return switch (this) {
      case FixedLength _, FixedSteps _ -> Optional.empty();
      case VariableLength _, VariableSteps _ ->
          Optional.of(new Field(name() + LENGTH_SUFFIX, DType.I64, Shape.of()));
    };
  }

  /// As many elements in every record.
  ///
  /// @param absent each element of a record that lacks the feature; empty where that is an error
  record FixedLength(
      String name, FeatureKind kind, DType dtype, Shape shape, Optional<Number> absent)
      implements FeatureSpec {
    public FixedLength {
      FeatureRules.check(name, kind, dtype);
      absent.ifPresent(number -> FeatureRules.element(name, dtype, number));
      FeatureRules.requireElements(new Field(name, dtype, shape));
    }

    @Override
    public Field field() {
      return new Field(name, dtype, shape);
    }
  }

  /// Up to `most` elements along one axis, padded at the end; none in a record that lacks the
  /// feature.
  record VariableLength(
      String name, FeatureKind kind, DType dtype, long most, Number padding, PadTo padTo)
      implements FeatureSpec {
    public VariableLength {
      FeatureRules.check(name, kind, dtype);
      MemorySegment _ = FeatureRules.element(name, dtype, padding);
      FeatureRules.requireElements(new Field(name, dtype, Shape.of(most)));
    }

    @Override
    public Field field() {
      return new Field(name, dtype, Shape.of(most));
    }
  }

  /// A feature list of a sequence example: as many steps in every record, each of one shape.
  record FixedSteps(String name, FeatureKind kind, DType dtype, long steps, Shape step)
      implements FeatureSpec {
    public FixedSteps {
      FeatureRules.check(name, kind, dtype);
      FeatureRules.requireElements(new Field(name, dtype, FeatureRules.stacked(steps, step)));
    }

    @Override
    public Field field() {
      return new Field(name, dtype, FeatureRules.stacked(steps, step));
    }
  }

  /// A feature list of up to `most` steps, each of one shape, padded with steps at the end; of none
  /// in a record that lacks the list.
  record VariableSteps(
      String name,
      FeatureKind kind,
      DType dtype,
      long most,
      Shape step,
      Number padding,
      PadTo padTo)
      implements FeatureSpec {
    public VariableSteps {
      FeatureRules.check(name, kind, dtype);
      MemorySegment _ = FeatureRules.element(name, dtype, padding);
      FeatureRules.requireElements(new Field(name, dtype, FeatureRules.stacked(most, step)));
    }

    @Override
    public Field field() {
      return new Field(name, dtype, FeatureRules.stacked(most, step));
    }
  }

  /// One string of bytes of the given shape.
  static FixedLength bytes(String name, long... shape) {
    return new FixedLength(name, FeatureKind.BYTES, DType.U8, Shape.of(shape), Optional.empty());
  }

  /// Floats of the given shape; of none for a single one.
  static FixedLength floats(String name, long... shape) {
    return new FixedLength(name, FeatureKind.FLOAT, DType.F32, Shape.of(shape), Optional.empty());
  }

  /// Integers of the given shape; of none for a single one.
  static FixedLength int64s(String name, long... shape) {
    return new FixedLength(name, FeatureKind.INT64, DType.I64, Shape.of(shape), Optional.empty());
  }
}
