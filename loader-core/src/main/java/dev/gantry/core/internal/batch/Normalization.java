// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.util.List;
import java.util.Set;

/// The value that each element of a sample becomes: `value · scale + shift`, with the scale and the shift of its
/// channel.
///
/// The value is rounded to 32 bits, then the product, then the sum, then the result to its dtype: each to
/// the nearest, ties to even. Wherever that is computed, the bits are the same. What is too large becomes
/// infinite. NaN has one form in each dtype: 0x7FC0 in BF16, 0x7E00 in F16, 0x7FC00000 in F32.
///
/// @param from one of [#SOURCES]
/// @param to one of [#TARGETS]
/// @param pixels elements of one channel in a sample
/// @param channelsLast whether a sample's elements lie channel beside channel, and become one channel after
///     the other; else they lie one channel after the other, and stay so
/// @param scale of each channel
/// @param shift of each channel
public record Normalization(
    DType from, DType to, long pixels, boolean channelsLast, List<Float> scale, List<Float> shift) {
  /// What can be normalised, in the order of `enum Type` of normalize.cu.
  public static final List<DType> SOURCES =
      List.of(
          DType.BOOL,
          DType.U8,
          DType.I8,
          DType.I16,
          DType.U16,
          DType.F16,
          DType.BF16,
          DType.I32,
          DType.U32,
          DType.F32,
          DType.F64,
          DType.I64,
          DType.U64);

  /// What can be made.
  public static final Set<DType> TARGETS = Set.of(DType.BF16, DType.F16, DType.F32);

  /// As in normalize.cu.
  public static final int MAX_CHANNELS = 256;

  public Normalization {
    scale = List.copyOf(scale);
    shift = List.copyOf(shift);
    if (!SOURCES.contains(from) || !TARGETS.contains(to)) {
      throw new MisuseException(from + " cannot become " + to);
    }
    MisuseException.requireRange("scales", scale.size(), 1, MAX_CHANNELS);
    MisuseException.requireRange("shifts", shift.size(), scale.size(), scale.size());
    MisuseException.requireRange("pixels", pixels, 1, Integer.MAX_VALUE / scale.size());
  }

  public int channels() {
    return scale.size();
  }

  /// The elements of a sample.
  public long elements() {
    return pixels * channels();
  }

  /// The bytes of a sample as it is read.
  public long fromBytes() {
    return elements() * from.alignmentBytes();
  }

  /// The bytes of a sample that was made.
  public long toBytes() {
    return elements() * to.alignmentBytes();
  }
}
