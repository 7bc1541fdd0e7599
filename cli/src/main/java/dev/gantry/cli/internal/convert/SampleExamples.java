// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Set;

/// Encodes samples as `tf.train.Example`s. A field of dtype F32 becomes a list of floats. BOOL and integers
/// become a list of int64, except U8, and U64, which has values that no int64 has. These two and all other
/// dtypes become one string of bytes, as they lie in memory, little endian. The shape is not kept.
final class SampleExamples {
  /// The most bytes of an int64 in a record.
  private static final int MAX_VARINT_BYTES = 10;

  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /// The dtypes that become int64s: those whose values an int64 holds, except U8, whose values become bytes.
  private static final Set<DType> INT64S =
      Set.of(DType.BOOL, DType.I8, DType.I16, DType.U16, DType.I32, DType.U32, DType.I64);

  private enum Form {
    BYTES,
    FLOATS,
    INTEGERS
  }

  private final List<Field> fields;

  /// @throws MisuseException if a sample could be longer than a record may be
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
      throw new MisuseException("a sample has more bytes than a TFRecord record may have");
    }
  }

  private static Form form(Field field) {
    return field.dtype() == DType.F32
        ? Form.FLOATS
        : INT64S.contains(field.dtype()) ? Form.INTEGERS : Form.BYTES;
  }

  private static long elements(Field field) {
    return field.shape().elements().orElseThrow();
  }

  /// Encodes one sample as a record.
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
