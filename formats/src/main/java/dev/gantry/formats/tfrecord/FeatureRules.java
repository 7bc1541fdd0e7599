package dev.gantry.formats.tfrecord;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// What holds for every [FeatureSpec].
public final class FeatureRules {
  private FeatureRules() {}

  static void check(String name, FeatureKind kind, DType dtype) {
    boolean fits =
        switch (kind) {
          case BYTES -> dtype.bits() % Byte.SIZE == 0;
          case FLOAT -> dtype == DType.F32;
          case INT64 -> dtype == DType.I64;
        };
    if (!fits) {
      throw new MisuseException("feature '" + name + "': of kind " + kind + " are no " + dtype);
    }
  }

  /// A record holds no more.
  static void requireElements(Field field) {
    if (field.sampleBytes() > TfRecordOptions.MOST_RECORD_BYTES * (long) Long.BYTES) {
      throw new MisuseException(
          "feature '" + field.name() + "': " + field.shape() + " is more than a record can hold");
    }
  }

  /// One more axis, outermost.
  public static Shape stacked(long count, Shape one) {
    long[] dimensions = new long[one.rank() + 1];
    dimensions[0] = count;
    System.arraycopy(one.toArray(), 0, dimensions, 1, one.rank());
    return Shape.of(dimensions);
  }

  /// A number as an element of a dtype.
  public static MemorySegment element(String name, DType dtype, Number number) {
    ByteBuffer bytes = ByteBuffer.allocate(dtype.bits() / Byte.SIZE).order(ByteOrder.LITTLE_ENDIAN);
    switch (dtype) {
      case F64 -> bytes.putDouble(number.doubleValue());
      case F32 -> bytes.putFloat(number.floatValue());
      case F16 -> bytes.putShort(Float.floatToFloat16(number.floatValue()));
      case BOOL -> bytes.put((byte) integer(name, dtype, number, 0, 1));
      case U8 -> bytes.put((byte) integer(name, dtype, number, 0, 0xff));
      case I8 -> bytes.put((byte) integer(name, dtype, number, Byte.MIN_VALUE, Byte.MAX_VALUE));
      case U16 -> bytes.putShort((short) integer(name, dtype, number, 0, 0xffff));
      case I16 ->
          bytes.putShort((short) integer(name, dtype, number, Short.MIN_VALUE, Short.MAX_VALUE));
      case U32 -> bytes.putInt((int) integer(name, dtype, number, 0, 0xffff_ffffL));
      case I32 ->
          bytes.putInt((int) integer(name, dtype, number, Integer.MIN_VALUE, Integer.MAX_VALUE));
      case U64 -> bytes.putLong(integer(name, dtype, number, 0, Long.MAX_VALUE));
      case I64 -> bytes.putLong(integer(name, dtype, number, Long.MIN_VALUE, Long.MAX_VALUE));
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, BF16, C64 -> {
        if (number.doubleValue() != 0) {
          throw new MisuseException(
              "feature '" + name + "': " + dtype + " is padded with 0 only, not with " + number);
        }
      }
    }
    return MemorySegment.ofArray(bytes.array());
  }

  private static long integer(String name, DType dtype, Number number, long least, long most) {
    long value = number.longValue();
    if (number.doubleValue() != value || value < least || value > most) {
      throw new MisuseException("feature '" + name + "': " + number + " is no " + dtype);
    }
    return value;
  }
}
