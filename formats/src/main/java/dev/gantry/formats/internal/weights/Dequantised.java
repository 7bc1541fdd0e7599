// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.convert.Dequantisation;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;

/// Describes how to compute a quantised tensor's values once its inputs are in memory.
public final class Dequantised {
  private Dequantised() {}

  /// @param to a dtype of [Dequantisation#TARGETS]
  /// @throws dev.gantry.core.MisuseException if the tensor has too many elements
  public static Dequantisation of(TensorShape shape, Encoding.Quantised layout, DType to) {
    int rowAxis = layout.rowAxis();
    Dequantisation.Indexes size =
        new Dequantisation.Indexes(
            Encoding.Quantised.product(shape, 0, rowAxis),
            rowAxis < 0 ? 1 : shape.dimension(rowAxis),
            Encoding.Quantised.product(shape, rowAxis + 1, shape.rank()));
    List<Long> first = layout.first();
    return new Dequantisation(
        layout.formula(),
        to,
        new Dequantisation.Box(
            new Dequantisation.Indexes(first.get(0), first.get(1), first.get(2)), size),
        layout.inputs().stream().map(Dequantised::input).toList(),
        layout.parameters());
  }

  private static Dequantisation.Input input(QuantisedInput input) {
    StoredTensor tensor = input.tensor();
    List<Long> strides = new ArrayList<>();
    long start = 0;
    long stride = tensor.dtype().bits() / Byte.SIZE;
    for (int axis = input.axes().size() - 1; axis >= 0; axis--) {
      strides.addFirst(stride);
      start += input.axes().get(axis).from() * stride;
      stride *= tensor.shape().dimension(axis);
    }
    return new Dequantisation.Input(tensor.bytes(), strides, start);
  }
}
