// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.ElementNumbers;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/// Encodes samples as `tf.train.Example`s. A field of dtype F32 becomes a list of floats. BOOL and
/// integers become a list of int64, except U8 and U64; U64 has values that int64 lacks. U8, U64
/// and all other dtypes become one byte string in little endian. The shape is not kept.
final class SampleExamples {
  /// The most bytes of an int64 in a record.
  private static final int MAX_VARINT_BYTES = 10;

  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private enum Form {
    BYTES,
    FLOATS,
    INTEGERS
  }

  private final List<Field> fields;

  /// @throws MisuseException if a sample's record could exceed the format's limit
  SampleExamples(List<Field> fields) {
    this.fields = fields;
    long most = 0;
    for (Field field : fields) {
      long bytes =
          switch (form(field)) {
            case BYTES, FLOATS -> field.sampleBytes();
            case INTEGERS ->
                Math.min(elements(field), TfRecordOptions.MAX_RECORD_BYTES) * MAX_VARINT_BYTES;
          };
      most += Math.min(bytes, TfRecordOptions.MAX_RECORD_BYTES + 1L);
    }
    if (most > TfRecordOptions.MAX_RECORD_BYTES) {
      throw new MisuseException(
          "a sample may have more bytes than a TFRecord record, at most "
              + TfRecordOptions.MAX_RECORD_BYTES);
    }
  }

  /// Integers become int64s if an int64 holds all their values. U8 is an exception: its values
  /// become bytes.
  private static Form form(Field field) {
    return switch (field.dtype()) {
      case F32 -> Form.FLOATS;
      case U8 -> Form.BYTES;
      default -> ElementNumbers.integers(field.dtype()).isPresent() ? Form.INTEGERS : Form.BYTES;
    };
  }

  private static long elements(Field field) {
    return field.shape().elements().orElseThrow();
  }

  /// Encodes one sample as a record.
  ///
  /// @param values the values of each field, in the order of the fields
  byte[] record(List<MemorySegment> values) {
    ExampleBuilder example = new ExampleBuilder();
    for (int i = 0; i < fields.size(); i++) {
      Field field = fields.get(i);
      MemorySegment value = values.get(i);
      switch (form(field)) {
        case BYTES -> example.bytes(field.name(), value.toArray(ValueLayout.JAVA_BYTE));
        case FLOATS -> example.floats(field.name(), value.toArray(FLOAT));
        case INTEGERS -> example.int64s(field.name(), integers(field, value));
      }
    }
    return example.toBytes();
  }

  private static long[] integers(Field field, MemorySegment value) {
    ElementNumbers.Integers element = ElementNumbers.integers(field.dtype()).orElseThrow();
    long[] integers = new long[(int) elements(field)];
    for (int i = 0; i < integers.length; i++) {
      integers[i] = element.at(value, (long) i * field.dtype().bits() / Byte.SIZE);
    }
    return integers;
  }
}
