// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/// Samples as `tf.train.Example`s. A field of dtype F32 becomes a list of floats; BOOL and integers
/// become a list of int64, but for U8 and for U64, which has values that no int64 has; these and
/// all others become one string of bytes, as they lie in memory, little endian. The shape is not
/// kept.
final class SampleExamples {
  /// The longest that an int64 can be in a record.
  private static final int MOST_VARINT_BYTES = 10;

  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private enum Form {
    BYTES,
    FLOATS,
    INTEGERS
  }

  private final List<Field> fields;

  /// @throws MisuseException if a sample may be longer than a record
  SampleExamples(List<Field> fields) {
    this.fields = fields;
    long most = 0;
    for (Field field : fields) {
      long bytes =
          switch (form(field)) {
            case BYTES, FLOATS -> field.sampleBytes();
            case INTEGERS ->
                Math.min(elements(field), TfRecordOptions.MOST_RECORD_BYTES) * MOST_VARINT_BYTES;
          };
      most += Math.min(bytes, TfRecordOptions.MOST_RECORD_BYTES + 1L);
    }
    if (most > TfRecordOptions.MOST_RECORD_BYTES) {
      throw new MisuseException("a sample has more bytes than a TFRecord record may have");
    }
  }

  private static Form form(Field field) {
    return switch (field.dtype()) {
      case F32 -> Form.FLOATS;
      case BOOL, I8, I16, U16, I32, U32, I64 -> Form.INTEGERS;
      case U8,
          U64,
          F16,
          BF16,
          F64,
          C64,
          F8_E5M2,
          F8_E4M3,
          F8_E8M0,
          F8_E4M3FNUZ,
          F8_E5M2FNUZ,
          F4,
          F6_E2M3,
          F6_E3M2 ->
          Form.BYTES;
    };
  }

  private static long elements(Field field) {
    return field.shape().elements().orElseThrow();
  }

  /// One sample's record.
  ///
  /// @param values of each field, in their order
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
    long[] integers = new long[(int) elements(field)];
    for (int i = 0; i < integers.length; i++) {
      integers[i] = integer(field, value, i);
    }
    return integers;
  }

  private static long integer(Field field, MemorySegment value, int index) {
    return switch (field.dtype().bits()) {
      case Byte.SIZE -> value.get(ValueLayout.JAVA_BYTE, index);
      case Short.SIZE -> {
        short bits = value.getAtIndex(SHORT, index);
        yield isUnsigned(field) ? Short.toUnsignedLong(bits) : bits;
      }
      case Integer.SIZE -> {
        int bits = value.getAtIndex(INT, index);
        yield isUnsigned(field) ? Integer.toUnsignedLong(bits) : bits;
      }
      default -> value.getAtIndex(LONG, index);
    };
  }

  private static boolean isUnsigned(Field field) {
    return field.dtype().name().startsWith("U");
  }
}
