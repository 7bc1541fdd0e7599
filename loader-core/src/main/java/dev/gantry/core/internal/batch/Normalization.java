// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.util.List;
import java.util.Set;

/// Normalises samples: each element `value` becomes `value · scale + shift`, with the scale and the shift of
/// its channel.
///
/// First the value is rounded to 32 bits, then the product, then the sum, then the result to its dtype; each is
/// rounded to the nearest, ties to even. CPU and GPU compute the same bits. A result that is too large becomes
/// infinite. NaN has one form in each dtype: 0x7FC0 in BF16, 0x7E00 in F16, 0x7FC00000 in F32.
///
/// @param from the elements' dtype, one of [#SOURCES]
/// @param to the results' dtype, one of [#TARGETS]
/// @param pixels how many elements of one channel a sample has
/// @param channelsLast whether a sample is channels-last (`HWC`) and becomes channels-first (`CHW`); if not, it
///     is channels-first and stays so
/// @param scale the scale of each channel
/// @param shift the shift of each channel
public record Normalization(
    DType from, DType to, long pixels, boolean channelsLast, List<Float> scale, List<Float> shift) {
  /// The dtypes that can be normalised, in the order of `enum Type` in `normalize.cu`.
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

  /// The dtypes that results can have.
  public static final Set<DType> TARGETS = Set.of(DType.BF16, DType.F16, DType.F32);

  /// The most channels; `normalize.cu` has the same limit.
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

  /// Returns how many elements a sample has.
  public long elements() {
    return pixels * channels();
  }

  /// Returns the bytes of a sample before it is normalised.
  public long fromBytes() {
    return elements() * from.alignmentBytes();
  }

  /// Returns the bytes of a sample after it is normalised.
  public long toBytes() {
    return elements() * to.alignmentBytes();
  }
}
