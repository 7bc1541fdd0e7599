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

/// Says how a feature of an example becomes a field of a batch.
///
/// A feature of kind [Kind#BYTES] is one string of bytes, which holds the elements of the dtype
/// one after the other, little endian; for U8 the elements are the bytes themselves. Features of
/// the other kinds have one possible dtype. A padding must be a number that the dtype can hold. A
/// padded field comes with a second field that holds its lengths, unless another feature has the
/// second field's name.
public sealed interface FeatureSpec {
  /// The suffix of a [#lengthField]'s name.
  String LENGTH_SUFFIX = "_length";

  /// The kind of the values in a feature's list.
  enum Kind {
    /// The values are strings of bytes; each string holds elements of any dtype as memory holds
    /// them, little endian.
    BYTES,
    /// The values have dtype F32.
    FLOAT,
    /// The values have dtype I64.
    INT64
  }

  /// Says to which length a batch pads values of different lengths.
  enum PadTo {
    /// Each value gets the length of the longest value in its batch, so shapes differ from batch
    /// to batch.
    LONGEST,
    /// Each value gets the largest length that the feature allows, so every batch has the same
    /// shape.
    MOST
  }

  /// The name of the feature in the records, which is also the field's name.
  String name();

  /// The kind of the values in the records; reading a record with values of another kind is an
  /// error.
  Kind kind();

  /// The dtype of the field, which fits the kind.
  DType dtype();

  /// The field, with the shape of the largest value that one sample can have.
  Field field();

  /// The field that holds the length of each sample's value without its padding, in elements or
  /// in steps; empty if the feature is never padded.
  default Optional<Field> lengthField() {
    return switch (this) {
      case FixedLength _, FixedSteps _, Decoded _ -> Optional.empty();
      case VariableLength _, VariableSteps _ ->
          Optional.of(new Field(name() + LENGTH_SUFFIX, DType.I64, TensorShape.of()));
    };
  }

  /// A feature with the same number of elements in every record.
  ///
  /// @param absent the value of each element for a record that lacks the feature; if empty, such
  ///     a record is an error
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

  /// A feature of up to `most` elements along one axis, padded at the end. For a record that
  /// lacks the feature, all elements are padding.
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

  /// A feature list of a sequence example, with the same number of steps in every record; all
  /// steps have one shape.
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

  /// A feature list of up to `most` steps, padded with steps at the end; all steps have one
  /// shape. For a record that lacks the list, all steps are padding.
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

  /// A feature with one string of bytes in every record, which a decoder turns into elements of a
  /// fixed dtype and shape while batches are read ahead.
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

  /// Decodes JPEG or PNG pictures, such as the feature `image/encoded`, into U8 values of the
  /// shape (height, width, 3).
  static Decoded image(String name, ImageDecoding decoding) {
    Field field = MisuseException.requireGiven("decoding", decoding).field(name);
    return new Decoded(name, field.dtype(), field.shape(), decoding);
  }

  /// A feature with one string of bytes, which has the given shape.
  static FixedLength bytes(String name, long... shape) {
    return new FixedLength(name, Kind.BYTES, DType.U8, TensorShape.of(shape), Optional.empty());
  }

  /// A feature of floats of the given shape; without a shape, it is a single float.
  static FixedLength floats(String name, long... shape) {
    return new FixedLength(name, Kind.FLOAT, DType.F32, TensorShape.of(shape), Optional.empty());
  }

  /// A feature of integers of the given shape; without a shape, it is a single integer.
  static FixedLength int64s(String name, long... shape) {
    return new FixedLength(name, Kind.INT64, DType.I64, TensorShape.of(shape), Optional.empty());
  }

  /// Returns the shape with an outermost axis of size `count` added.
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
