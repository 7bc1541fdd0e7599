// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Converts elements of 8 bits to wider ones: each result is the value of the element's code times its scale,
/// multiplied in 32 bits, then rounded to the nearest, ties to even. A result that is too large becomes
/// infinite. NaN has one form in each dtype: 0x7FC0 in BF16, 0x7E00 in F16, 0x7FC00000 in F32.
///
/// @param from an F8 dtype other than F8_E8M0, or I8
/// @param to BF16, F16 or F32
/// @param scaleType F32, BF16, F16 or F8_E8M0; null if there are no scales
public record Conversion(DType from, DType to, ScaleGrid grid, @Nullable DType scaleType) {
  /// The dtypes that can be converted.
  public static final Set<DType> SOURCES =
      Set.of(DType.F8_E4M3, DType.F8_E5M2, DType.F8_E4M3FNUZ, DType.F8_E5M2FNUZ, DType.I8);

  /// The dtypes that results can have.
  public static final Set<DType> TARGETS = Set.of(DType.BF16, DType.F16, DType.F32);

  /// The dtypes that scales can have, in the order of `enum ScaleType` in `convert.cu`.
  public static final List<DType> SCALES = List.of(DType.F32, DType.BF16, DType.F16, DType.F8_E8M0);

  public Conversion {
    requireOneOf("the source's dtype", from, SOURCES);
    requireOneOf("the target's dtype", to, TARGETS);
    if (scaleType != null) {
      requireOneOf("the scales' dtype", scaleType, SCALES);
    }
    if (grid.elements() > Long.MAX_VALUE / Float.BYTES) {
      throw new MisuseException("too many elements: " + grid.elements());
    }
  }

  /// Returns a conversion without scales.
  public static Conversion plain(DType from, DType to, long elements) {
    return new Conversion(from, to, ScaleGrid.single(elements), null);
  }

  private static void requireOneOf(String what, DType dtype, Collection<DType> some) {
    if (!some.contains(dtype)) {
      throw new MisuseException(
          what + " must be one of " + some.stream().sorted().toList() + " (was " + dtype + ")");
    }
  }

  public long elements() {
    return grid.elements();
  }

  public long sourceBytes() {
    return elements();
  }

  public long targetBytes() {
    return elements() * (to.bits() / Byte.SIZE);
  }

  public long scaleBytes() {
    return scaleType == null ? 0 : grid.scales() * (scaleType.bits() / Byte.SIZE);
  }

  /// A conversion of memory, all of it on one device.
  ///
  /// @param source the address of the elements; it needs no alignment
  /// @param scales the address of the scales, which needs no alignment; 0 if there are none
  /// @param target the address of the results, aligned to their size; they overlap neither the source nor the scales
  public record Task(Conversion what, long source, long scales, long target) {
    public Task {
      long bytes = what.targetBytes();
      int alignment = what.to.alignmentBytes();
      if (bytes > 0 && target % alignment != 0) {
        throw new MisuseException(
            "the target's address must be a multiple of " + alignment + " (was " + target + ")");
      }
      if (overlap(target, bytes, source, what.sourceBytes())
          || overlap(target, bytes, scales, what.scaleBytes())) {
        throw new MisuseException("the target overlaps what it is made of");
      }
    }

    private static boolean overlap(long one, long oneBytes, long other, long otherBytes) {
      return one < other + otherBytes && other < one + oneBytes;
    }
  }
}
