// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.core.DType;
import dev.gantry.formats.internal.batches.ElementNumbers;
import dev.gantry.formats.internal.batches.ElementNumbers.Floats;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// Compares the values of tensors in memory.
final class Numbers {
  private Numbers() {}

  /// Returns the largest absolute difference between the elements of two tensors of one shape;
  /// empty if a dtype is not of plain numbers.
  ///
  /// @return NaN if an element is NaN in one tensor only
  static Optional<Double> maxDifference(
      StoredTensor tensor, MemorySegment bytes, DType otherType, MemorySegment others) {
    Optional<Floats> one = ElementNumbers.numbers(tensor.dtype());
    Optional<Floats> other = ElementNumbers.numbers(otherType);
    if (one.isEmpty() || other.isEmpty()) {
      return Optional.empty();
    }
    int pitch = tensor.dtype().alignmentBytes();
    int otherPitch = otherType.alignmentBytes();
    double most = 0;
    long elements = tensor.shape().elements().orElseThrow();
    for (long i = 0; i < elements && !Double.isNaN(most); i++) {
      double first = one.get().at(bytes, i * pitch);
      double second = other.get().at(others, i * otherPitch);
      if (first != second && !(Double.isNaN(first) && Double.isNaN(second))) {
        most = Math.max(most, Math.abs(first - second));
      }
    }
    return Optional.of(most);
  }
}
