// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.core.DType;
import dev.gantry.formats.internal.batches.ElementNumbers;
import dev.gantry.formats.internal.batches.ElementNumbers.Floats;
import dev.gantry.formats.internal.batches.ElementNumbers.Integers;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Optional;

/// Compares the values of tensors in memory.
final class Numbers {
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private Numbers() {}

  /// Returns the difference between the elements with one index; 0 if both are NaN.
  @FunctionalInterface
  private interface Difference {
    double at(long index);
  }

  /// Returns the largest absolute difference between the elements of two tensors of one shape;
  /// empty if a dtype is not of plain numbers.
  ///
  /// @return NaN if an element is NaN in one tensor only
  static Optional<Double> maxDifference(
      StoredTensor tensor, MemorySegment bytes, DType otherType, MemorySegment others) {
    return difference(tensor.dtype(), bytes, otherType, others)
        .map(difference -> {
          double most = 0;
          long elements = tensor.shape().elements().orElseThrow();
          for (long i = 0; i < elements && !Double.isNaN(most); i++) {
            most = Math.max(most, difference.at(i));
          }
          return most;
        });
  }

  /// Integers are subtracted as such: two that differ may be the same double.
  private static Optional<Difference> difference(
      DType type, MemorySegment bytes, DType otherType, MemorySegment others) {
    long pitch = type.alignmentBytes();
    long otherPitch = otherType.alignmentBytes();
    if (type == DType.U64 && otherType == DType.U64) {
      // The order of two numbers stays the same if the highest bit of both is flipped.
      return Optional.of(i ->
          apart(
              bytes.get(LONG, i * pitch) ^ Long.MIN_VALUE,
              others.get(LONG, i * pitch) ^ Long.MIN_VALUE));
    }
    Optional<Integers> integer = ElementNumbers.integers(type);
    Optional<Integers> otherInteger = ElementNumbers.integers(otherType);
    if (integer.isPresent() && otherInteger.isPresent()) {
      return Optional.of(i ->
          apart(integer.get().at(bytes, i * pitch), otherInteger.get().at(others, i * otherPitch)));
    }
    Optional<Floats> number = ElementNumbers.numbers(type);
    Optional<Floats> otherNumber = ElementNumbers.numbers(otherType);
    if (number.isEmpty() || otherNumber.isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(i ->
        apart(number.get().at(bytes, i * pitch), otherNumber.get().at(others, i * otherPitch)));
  }

  private static double apart(double first, double second) {
    return first == second || (Double.isNaN(first) && Double.isNaN(second))
        ? 0
        : Math.abs(first - second);
  }

  private static double apart(long first, long second) {
    // The difference of the larger one and the smaller one is right as an unsigned number.
    long difference = first > second ? first - second : second - first;
    return (difference >>> 1) * 2.0 + (difference & 1);
  }
}
