// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;

/// Converts numbers to elements of a dtype, little endian.
public final class Elements {
  private static final Set<DType> SIGNED = EnumSet.of(DType.I8, DType.I16, DType.I32, DType.I64);
  private static final Set<DType> UNSIGNED = EnumSet.of(DType.U8, DType.U16, DType.U32, DType.U64);

  private Elements() {}

  /// The range of an integer dtype, cut to what fits a `long`.
  public record IntegerRange(long least, long most) {
    public boolean contains(long value) {
      return value >= least && value <= most;
    }
  }

  /// Returns the range of an integer dtype; empty for other dtypes.
  public static Optional<IntegerRange> range(DType dtype) {
    int spare = Long.SIZE - dtype.bits();
    if (SIGNED.contains(dtype)) {
      return Optional.of(new IntegerRange(Long.MIN_VALUE >> spare, Long.MAX_VALUE >> spare));
    }
    return UNSIGNED.contains(dtype)
        ? Optional.of(new IntegerRange(0, spare == 0 ? Long.MAX_VALUE : -1L >>> spare))
        : Optional.empty();
  }

  /// Returns a number as one element's bytes.
  ///
  /// @param subject names the number's use at the start of an error's message
  /// @throws MisuseException if the dtype cannot hold the number
  public static MemorySegment of(String subject, DType dtype, Number number) {
    ByteBuffer bytes = ByteBuffer.allocate(dtype.bits() / Byte.SIZE).order(ByteOrder.LITTLE_ENDIAN);
    switch (dtype) {
      case F64 -> bytes.putDouble(number.doubleValue());
      case F32 -> bytes.putFloat(number.floatValue());
      case F16 -> bytes.putShort(Float.floatToFloat16(number.floatValue()));
      case BOOL, U8, I8, U16, I16, U32, I32, U64, I64 -> {
        IntegerRange range = range(dtype).orElse(new IntegerRange(0, 1));
        long value = number.longValue();
        if (number.doubleValue() != value || !range.contains(value)) {
          throw new MisuseException(
              subject
                  + ": "
                  + dtype
                  + " holds integers from "
                  + range.least()
                  + " to "
                  + range.most()
                  + " (was "
                  + number
                  + ")");
        }
        for (long rest = value; bytes.hasRemaining(); rest >>= Byte.SIZE) {
          bytes.put((byte) rest);
        }
      }
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, BF16, C64 -> {
        if (number.doubleValue() != 0) {
          throw new MisuseException(
              subject + ": " + dtype + " can be padded with 0 only (was " + number + ")");
        }
      }
    }
    return MemorySegment.ofArray(bytes.array());
  }
}
