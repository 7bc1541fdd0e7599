// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// The results of normalising on the host, which are the reference for the kernels' results.
class HostNormalizerTest {
  private static final List<Float> SCALES = List.of(0.017f, 1 / 255f, 3f);
  private static final List<Float> SHIFTS = List.of(-2.1f, 0f, 1e-3f);

  private static ByteBuffer run(Normalization what, byte[] samples, int rows) {
    int to = (samples.length + 7) / 8 * 8;
    ByteBuffer memory =
        ByteBuffer.allocate(to + (int) what.toBytes() * rows).order(ByteOrder.LITTLE_ENDIAN);
    memory.put(0, samples);
    NormalizedRows all = new NormalizedRows(what, 0, what.fromBytes(), to, rows);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment slot = arena.allocate(memory.capacity());
      slot.copyFrom(MemorySegment.ofBuffer(memory));
      HostNormalizer.normalize(all, slot, 0, rows);
      MemorySegment.ofBuffer(memory).copyFrom(slot);
    }
    return memory.slice(to, memory.capacity() - to).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static byte[] codes(int count) {
    byte[] codes = new byte[count];
    for (int i = 0; i < count; i++) {
      codes[i] = (byte) i;
    }
    return codes;
  }

  /// All codes, in few samples, whose values are computed, and in many, whose values are looked
  /// up.
  @ParameterizedTest
  @CsvSource({"F32, 1", "F32, 40", "F16, 1", "F16, 40", "BF16, 1", "BF16, 40"})
  void channelsThatComeLastBecomeTheFirst(DType to, int rows) {
    int pixels = 28;
    Normalization what = new Normalization(DType.U8, to, pixels, true, SCALES, SHIFTS);
    byte[] samples = codes(pixels * 3 * rows);
    ByteBuffer results = run(what, samples, rows);
    for (int row = 0; row < rows; row++) {
      for (int channel = 0; channel < 3; channel++) {
        for (int pixel = 0; pixel < pixels; pixel++) {
          int code = samples[(row * pixels + pixel) * 3 + channel] & 0xFF;
          float product = code * SCALES.get(channel);
          float value = product + SHIFTS.get(channel);
          int index = (row * 3 + channel) * pixels + pixel;
          switch (to) {
            case F32 -> assertThat(results.getFloat(4 * index)).isEqualTo(value);
            case F16 ->
                assertThat(results.getShort(2 * index)).isEqualTo(Float.floatToFloat16(value));
            default ->
                assertThat(Float.intBitsToFloat(results.getShort(2 * index) << 16))
                    .isEqualTo(nearestBf16(value));
          }
        }
      }
    }
  }

  /// Returns the nearest BF16 value, by an exact comparison of the distances to both neighbours.
  private static float nearestBf16(float value) {
    float down = Float.intBitsToFloat(Float.floatToRawIntBits(value) & 0xFFFF0000);
    float up = Float.intBitsToFloat(Float.floatToRawIntBits(down) + 0x10000);
    BigDecimal exact = new BigDecimal(value);
    int nearer =
        exact
            .subtract(new BigDecimal(down))
            .abs()
            .compareTo(new BigDecimal(up).subtract(exact).abs());
    boolean even = (Float.floatToRawIntBits(down) & 0x10000) == 0;
    return nearer < 0 || (nearer == 0 && even) ? down : up;
  }

  @Test
  void channelsThatComeFirstStay() {
    Normalization what = new Normalization(DType.I16, DType.F32, 2, false, SCALES, SHIFTS);
    ByteBuffer samples = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN);
    for (int value : new int[] {-300, 1, 2, 255, 4, 32767}) {
      samples.putShort((short) value);
    }
    ByteBuffer results = run(what, samples.array(), 1);
    assertThat(results.getFloat(0)).isEqualTo(-300 * 0.017f + -2.1f);
    assertThat(results.getFloat(4)).isEqualTo(1 * 0.017f + -2.1f);
    assertThat(results.getFloat(12)).isEqualTo(1f);
    assertThat(results.getFloat(20)).isEqualTo(32767 * 3f + 1e-3f);
  }

  /// Values at the ends of the range and between them, which F32 rounds.
  @ParameterizedTest
  @EnumSource(names = {"BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64", "U64"})
  void integersAreRoundedToTheNearest(DType from) {
    Normalization what = new Normalization(from, DType.F32, 1, false, List.of(1f), List.of(0f));
    boolean signed = from.name().startsWith("I");
    for (long bits :
        new long[] {0, 1, -1, Long.MIN_VALUE >>> (64 - from.bits()), 0x7FFF_FFC0_8000_0001L}) {
      ByteBuffer sample = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, bits);
      int spare = 64 - from.bits();
      long value = signed ? bits << spare >> spare : bits << spare >>> spare;
      BigDecimal exact =
          from == DType.BOOL
              ? new BigDecimal((bits & 0xFF) == 0 ? 0 : 1)
              : new BigDecimal(signed ? Long.toString(value) : Long.toUnsignedString(value));
      byte[] bytes = new byte[from.alignmentBytes()];
      sample.get(0, bytes);
      assertThat(run(what, bytes, 1).getFloat(0)).isEqualTo(exact.floatValue());
    }
  }

  @Test
  void floatsAreWidenedOrRounded() {
    ByteBuffer half = ByteBuffer.allocate(2).order(ByteOrder.LITTLE_ENDIAN);
    half.putShort(0, Float.floatToFloat16(0.1f));
    Normalization of16 =
        new Normalization(DType.F16, DType.F32, 1, false, List.of(1f), List.of(0f));
    assertThat(run(of16, half.array(), 1).getFloat(0))
        .isEqualTo(Float.float16ToFloat(Float.floatToFloat16(0.1f)));
    ByteBuffer wide = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putDouble(0, 0.1);
    Normalization of64 =
        new Normalization(DType.F64, DType.F32, 1, false, List.of(1f), List.of(0f));
    assertThat(run(of64, wide.array(), 1).getFloat(0)).isEqualTo(0.1f);
    wide.putDouble(0, Double.NaN);
    assertThat(run(of64, wide.array(), 1).getInt(0)).isEqualTo(0x7FC00000);
  }

  @Test
  void misuseIsRefused() {
    assertThatThrownBy(
            () -> new Normalization(DType.C64, DType.F32, 1, false, List.of(1f), List.of(0f)))
        .isInstanceOf(MisuseException.class)
        .hasMessage("C64 cannot become F32");
    assertThatThrownBy(
            () -> new Normalization(DType.U8, DType.F32, 1, false, List.of(1f), List.of(0f, 1f)))
        .isInstanceOf(MisuseException.class)
        .hasMessage("shifts must be 1 to 1 (was 2)");
  }
}
