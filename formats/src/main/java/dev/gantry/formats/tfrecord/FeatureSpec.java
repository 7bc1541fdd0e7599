// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.internal.batches.Elements;
import dev.gantry.formats.spi.FieldDecoder;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.stream.LongStream;

/// How a feature of an example becomes a field of a batch.
///
/// A feature of kind [Kind#BYTES] is one string of bytes, which holds the elements of the dtype one
/// after the other, little endian: of U8 they are the bytes themselves. Other kinds have their own
/// dtype only. A padding must be a number that the dtype can hold. Beside a field that is padded
/// there is a field of its lengths, unless another feature has that name.
public sealed interface FeatureSpec {
  /// The suffix of a [#lengthField]'s name.
  String LENGTH_SUFFIX = "_length";

  /// The kinds of values that a feature is a list of.
  enum Kind {
    /// Strings of bytes; each holds elements of any dtype, as they lie in memory, little endian.
    BYTES,
    /// Values of dtype F32.
    FLOAT,
    /// Values of dtype I64.
    INT64
  }

  /// How long values of different lengths become in a batch.
  enum PadTo {
    /// Each value gets the length of the longest one in its batch, so shapes differ from batch to batch.
    LONGEST,
    /// Each value gets the largest length that is allowed, so every batch has the same shape.
    MOST
  }

  /// The name of the feature in the records, and of the field.
  String name();

  /// The kind of values that the records have; others are an error when they are read.
  Kind kind();

  /// The dtype of the field, which fits the kind.
  DType dtype();

  /// The largest value of one sample, as a field of its name.
  Field field();

  /// How long each sample's value is without its padding, in elements or in steps, as a field named
  /// after the feature; empty where nothing is padded.
  default Optional<Field> lengthField() {
    return switch (this) {
      case FixedLength _, FixedSteps _, Decoded _ -> Optional.empty();
      case VariableLength _, VariableSteps _ ->
          Optional.of(new Field(name() + LENGTH_SUFFIX, DType.I64, TensorShape.of()));
    };
  }

  /// A feature with the same number of elements in every record.
  ///
  /// @param absent each element of a record that lacks the feature; empty where that is an error
  record FixedLength(
      String name, Kind kind, DType dtype, TensorShape shape, Optional<Number> absent)
      implements FeatureSpec {
    public FixedLength {
      MisuseException.requireGiven("absent", absent);
      check(kind, new Field(name, dtype, shape), absent.orElse(0));
    }

    @Override
    public Field field() {
      return new Field(name, dtype, shape);
    }
  }

  /// Up to `most` elements along one axis, padded at the end; none in a record that lacks the
  /// feature.
  record VariableLength(String name, Kind kind, DType dtype, long most, Number padding, PadTo padTo)
      implements FeatureSpec {
    public VariableLength {
      MisuseException.requireGiven("padTo", padTo);
      check(kind, new Field(name, dtype, TensorShape.of(most)), padding);
    }

    @Override
    public Field field() {
      return new Field(name, dtype, TensorShape.of(most));
    }
  }

  /// A feature list of a sequence example: as many steps in every record, each of one shape.
  record FixedSteps(String name, Kind kind, DType dtype, long steps, TensorShape step)
      implements FeatureSpec {
    public FixedSteps {
      check(kind, new Field(name, dtype, stacked(steps, step)), 0);
    }

    @Override
    public Field field() {
      return new Field(name, dtype, stacked(steps, step));
    }
  }

  /// A feature list of up to `most` steps, each of one shape, padded with steps at the end; of none
  /// in a record that lacks the list.
  record VariableSteps(
      String name, Kind kind, DType dtype, long most, TensorShape step, Number padding, PadTo padTo)
      implements FeatureSpec {
    public VariableSteps {
      MisuseException.requireGiven("padTo", padTo);
      check(kind, new Field(name, dtype, stacked(most, step)), padding);
    }

    @Override
    public Field field() {
      return new Field(name, dtype, stacked(most, step));
    }
  }

  /// A string of bytes in every record, which a decoder turns into elements of a fixed dtype and shape while batches are
  /// read ahead.
  record Decoded(String name, DType dtype, TensorShape shape, FieldDecoder decoder)
      implements FeatureSpec {
    public Decoded {
      MisuseException.requireGiven("decoder", decoder);
      check(Kind.BYTES, new Field(name, dtype, shape), 0);
    }

    @Override
    public Kind kind() {
      return Kind.BYTES;
    }

    @Override
    public Field field() {
      return new Field(name, dtype, shape);
    }
  }

  /// Pictures, JPEG or PNG, as U8 of (height, width, 3), such as those of `image/encoded`.
  static Decoded image(String name, ImageDecoding decoding) {
    Field field = MisuseException.requireGiven("decoding", decoding).field(name);
    return new Decoded(name, field.dtype(), field.shape(), decoding);
  }

  /// One string of bytes of the given shape.
  static FixedLength bytes(String name, long... shape) {
    return new FixedLength(name, Kind.BYTES, DType.U8, TensorShape.of(shape), Optional.empty());
  }

  /// Floats of the given shape; without a shape, a single float.
  static FixedLength floats(String name, long... shape) {
    return new FixedLength(name, Kind.FLOAT, DType.F32, TensorShape.of(shape), Optional.empty());
  }

  /// Integers of the given shape; without a shape, a single integer.
  static FixedLength int64s(String name, long... shape) {
    return new FixedLength(name, Kind.INT64, DType.I64, TensorShape.of(shape), Optional.empty());
  }

  /// Returns a shape with one more axis, the outermost.
  private static TensorShape stacked(long count, TensorShape one) {
    return TensorShape.of(
        LongStream.concat(
                LongStream.of(count),
                LongStream.of(MisuseException.requireGiven("step", one).toArray()))
            .toArray());
  }

  private static void check(Kind kind, Field field, Number padding) {
    MisuseException.requireGiven("kind", kind);
    MisuseException.requireGiven("padding", padding);
    String subject = "feature '" + field.name() + "'";
    DType dtype = field.dtype();
    boolean fits =
        switch (kind) {
          case BYTES -> dtype.bits() % Byte.SIZE == 0;
          case FLOAT -> dtype == DType.F32;
          case INT64 -> dtype == DType.I64;
        };
    if (!fits) {
      throw new MisuseException(subject + ": kind " + kind + " cannot have dtype " + dtype);
    }
    MemorySegment _ = Elements.of(subject, dtype, padding);
    if (field.sampleBytes() > TfRecordOptions.MAX_RECORD_BYTES * (long) Long.BYTES) {
      throw new MisuseException(subject + ": " + field.shape() + " is more than a record can hold");
    }
  }
}
