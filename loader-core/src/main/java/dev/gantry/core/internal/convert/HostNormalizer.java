// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.gantry.core.DType;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/// Normalises samples in host memory. For elements of one byte, it computes a table of the 256
/// possible results of each channel and looks each element up in it.
public final class HostNormalizer {
  private static final int CODES = 256;

  private static final ValueLayout.OfShort SHORT =
      JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Normalization what;
  private final MemorySegment slot;
  private final int channels;
  private final int pixels;
  private final int step;
  private final float[] scale;
  private final float[] shift;

  /// The results by channel and code; empty if it is faster to compute each element.
  private final int[][] results;

  /// @param rows how many samples there are
  private HostNormalizer(Normalization what, MemorySegment slot, long rows) {
    this.what = what;
    this.slot = slot;
    this.channels = what.channels();
    this.pixels = (int) what.pixels();
    this.step = what.channelsLast() ? channels : 1;
    this.scale = floats(what.scale());
    this.shift = floats(what.shift());
    boolean table = what.from().bits() == Byte.SIZE && rows * pixels >= CODES;
    this.results = new int[table ? channels : 0][];
  }

  private static float[] floats(List<Float> values) {
    float[] floats = new float[values.size()];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = values.get(i);
    }
    return floats;
  }

  /// Normalises some samples.
  ///
  /// @param slot the memory of the whole slot
  /// @param first the index of the first sample
  /// @param end the index after the last sample
  public static void normalize(NormalizedRows rows, MemorySegment slot, long first, long end) {
    HostNormalizer normalizer = new HostNormalizer(rows.what(), slot, end - first);
    for (long row = first; row < end; row++) {
      normalizer.row(rows.from() + row * rows.fromPitch(), rows.to() + row * rows.what().toBytes());
    }
  }

  private void row(long from, long to) {
    int elementBytes = what.from().alignmentBytes();
    long channelBytes = (what.channelsLast() ? 1L : pixels) * elementBytes;
    for (int channel = 0; channel < channels; channel++) {
      long source = from + channel * channelBytes;
      long target = to + (long) channel * pixels * what.to().alignmentBytes();
      if (results.length == 0) {
        compute(channel, source, target, step * elementBytes);
      } else if (what.to() == DType.F32) {
        lookUpInts(table(channel), source, target);
      } else {
        lookUpShorts(table(channel), source, target);
      }
    }
  }

  private int[] table(int channel) {
    int[] table = results[channel];
    if (table == null) {
      table = new int[CODES];
      for (int code = 0; code < CODES; code++) {
        table[code] = result(channel, value((byte) code));
      }
      results[channel] = table;
    }
    return table;
  }

  private void lookUpInts(int[] table, long source, long target) {
    for (int i = 0; i < pixels; i++) {
      int code = slot.get(JAVA_BYTE, source + (long) i * step) & 0xFF;
      slot.set(INT, target + (long) i * Integer.BYTES, table[code]);
    }
  }

  private void lookUpShorts(int[] table, long source, long target) {
    for (int i = 0; i < pixels; i++) {
      int code = slot.get(JAVA_BYTE, source + (long) i * step) & 0xFF;
      slot.set(SHORT, target + (long) i * Short.BYTES, (short) table[code]);
    }
  }

  private void compute(int channel, long source, long target, int stepBytes) {
    for (int i = 0; i < pixels; i++) {
      int bits = result(channel, value(source + (long) i * stepBytes));
      if (what.to() == DType.F32) {
        slot.set(INT, target + (long) i * Integer.BYTES, bits);
      } else {
        slot.set(SHORT, target + (long) i * Short.BYTES, (short) bits);
      }
    }
  }

  /// Returns the bits of a result. Java rounds the product before it adds, as the kernel does.
  private int result(int channel, float value) {
    return Codes.bits(what.to(), value * scale[channel] + shift[channel]);
  }

  private float value(byte code) {
    return what.from() == DType.I8
        ? code
        : what.from() == DType.U8 ? code & 0xFF : code == 0 ? 0 : 1;
  }

  private float value(long at) {
    return switch (what.from()) {
      case BOOL, U8, I8 -> value(slot.get(JAVA_BYTE, at));
      case I16 -> slot.get(SHORT, at);
      case U16 -> slot.get(SHORT, at) & 0xFFFF;
      case F16 -> Float.float16ToFloat(slot.get(SHORT, at));
      case BF16 -> Float.intBitsToFloat(slot.get(SHORT, at) << Short.SIZE);
      case I32 -> slot.get(INT, at);
      case U32 -> Integer.toUnsignedLong(slot.get(INT, at));
      case F32 -> Float.intBitsToFloat(slot.get(INT, at));
      case F64 -> (float) Double.longBitsToDouble(slot.get(LONG, at));
      case I64 -> slot.get(LONG, at);
      case U64 -> unsigned(slot.get(LONG, at));
      default -> throw new IllegalArgumentException("not normalised: " + what.from());
    };
  }

  /// Returns an unsigned number as a float. A number above 2⁶³-1 is halved first. If the halving
  /// loses a bit, the last bit of the half is set, so that the half is rounded as the number
  /// itself would be.
  private static float unsigned(long bits) {
    return bits >= 0 ? bits : 2f * ((bits >>> 1) | (bits & 1));
  }
}
