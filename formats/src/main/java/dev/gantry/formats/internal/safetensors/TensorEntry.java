// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.DType;
import dev.gantry.core.Shape;
import java.util.Comparator;

/// A tensor as the header has it, right in itself: `end - begin` is what dtype and shape need.
///
/// @param begin bytes from the start of the data section, which may be anywhere
record TensorEntry(String name, DType dtype, Shape shape, long begin, long end) {
  /// The order in which the bytes lie; names settle the order of tensors without any.
  static final Comparator<TensorEntry> IN_FILE =
      Comparator.comparingLong(TensorEntry::begin)
          .thenComparingLong(TensorEntry::end)
          .thenComparing(TensorEntry::name);
}
