// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Formula;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import java.util.List;

/// Describes a quantised tensor in two forms: its stored blocks, and its values.
final class GgufBlocks {
  private GgufBlocks() {}

  /// Whether the values' indexes are small enough for formulas. In a formula, the first axis is
  /// the rows, and all other axes together are the columns, since they consist of whole blocks.
  static boolean fits(TensorShape shape) {
    long rows = rows(shape);
    return rows <= Integer.MAX_VALUE
        && shape.elements().orElseThrow() / Math.max(1, rows) <= Integer.MAX_VALUE;
  }

  private static long rows(TensorShape shape) {
    return shape.rank() <= 1 ? 1 : shape.dimension(0);
  }

  /// Returns the stored tensor of bytes, whose last axis is the bytes of a row's blocks.
  ///
  /// @param shape the shape of the values
  static StoredTensor stored(String name, GgufType type, TensorShape shape, Extent extent) {
    long[] dimensions = shape.toArray();
    int last = dimensions.length - 1;
    dimensions[last] = dimensions[last] / type.blockElements() * type.blockBytes();
    return new StoredTensor(name, DType.U8, TensorShape.of(dimensions), extent);
  }

  /// Returns the tensor of the values of stored blocks.
  ///
  /// @param stored the blocks, whose rows may be in another order than the file's
  static StoredTensor value(StoredTensor stored, GgufType type, TensorShape shape) {
    long rows = rows(shape);
    long blocks = rows == 0 ? 0 : shape.elements().orElseThrow() / rows / type.blockElements();
    QuantisedInput input =
        QuantisedInput.of(
            new StoredTensor(
                stored.name(),
                DType.U8,
                TensorShape.of(rows, blocks, type.blockBytes()),
                stored.extent(),
                stored.encoding()),
            QuantisedInput.Axis.of(Formula.Axis.ROW),
            QuantisedInput.Axis.of(Formula.Axis.COLUMN, type.blockElements()),
            QuantisedInput.Axis.WHOLE);
    Encoding encoding =
        new Encoding.Quantised(
            type.name(),
            GgufFormulas.of(type),
            List.of(input),
            List.of(),
            shape.rank() <= 1 ? -1 : 0);
    return new StoredTensor(stored.name(), DType.F32, shape, stored.extent(), encoding);
  }
}
