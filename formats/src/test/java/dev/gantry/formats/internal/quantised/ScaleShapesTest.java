// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.quantised.ScaleShapes.Block;
import dev.gantry.formats.internal.quantised.ScaleShapes.Fit;
import dev.gantry.formats.spi.QuantisedInput;
import java.util.Objects;
import java.util.Random;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class ScaleShapesTest {
  private static final Block STATED = new Block(128, 128);

  static Stream<Arguments> found() {
    return Stream.of(
        // These tensors have one scale.
        found(shape(512, 256), shape(), null, ScaleGrid.single(512 * 256)),
        found(shape(512, 256), shape(1), null, ScaleGrid.single(512 * 256)),
        found(shape(100, 50), shape(1, 1), STATED, ScaleGrid.single(5000)),
        found(shape(4, 8, 16), shape(1), null, ScaleGrid.single(512)),
        found(shape(), shape(), null, ScaleGrid.single(1)),
        // These tensors have a scale for each row, matrix or output channel.
        found(shape(512, 256), shape(512), null, new ScaleGrid(1, 512, 256, 1, 256)),
        found(shape(512, 256), shape(512, 1), STATED, new ScaleGrid(1, 512, 256, 1, 256)),
        found(shape(64, 64), shape(64), null, new ScaleGrid(1, 64, 64, 1, 64)),
        found(shape(4, 8, 16), shape(4), null, new ScaleGrid(1, 4, 128, 1, 128)),
        found(shape(4, 8, 16), shape(4, 1, 1), null, new ScaleGrid(1, 4, 128, 1, 128)),
        found(shape(4, 8, 16), shape(4, 8), null, new ScaleGrid(1, 32, 16, 1, 16)),
        found(shape(4, 8, 16), shape(4, 8, 1), null, new ScaleGrid(1, 32, 16, 1, 16)),
        found(shape(9, 3, 2, 2), shape(9, 1, 1, 1), null, new ScaleGrid(1, 9, 12, 1, 12)),
        found(shape(0, 16), shape(0), null, new ScaleGrid(1, 0, 16, 1, 16)),
        // These tensors have a scale for each column.
        found(shape(512, 256), shape(256), null, new ScaleGrid(1, 512, 256, 512, 1)),
        found(shape(64, 64), shape(1, 64), null, new ScaleGrid(1, 64, 64, 64, 1)),
        found(shape(4, 8, 16), shape(1, 1, 16), null, new ScaleGrid(1, 32, 16, 32, 1)),
        // The configuration gives the size of these blocks.
        found(shape(512, 256), shape(4, 2), STATED, new ScaleGrid(1, 512, 256, 128, 128)),
        found(shape(513, 257), shape(5, 3), STATED, new ScaleGrid(1, 513, 257, 128, 128)),
        found(shape(512, 100), shape(4, 1), STATED, new ScaleGrid(1, 512, 100, 128, 100)),
        found(shape(7, 500, 256), shape(7, 4, 2), STATED, new ScaleGrid(7, 500, 256, 128, 128)),
        found(shape(90, 60), shape(3, 3), new Block(40, 20), new ScaleGrid(1, 90, 60, 40, 20)),
        // The shapes give the size of these blocks.
        found(shape(512, 256), shape(4, 2), null, new ScaleGrid(1, 512, 256, 128, 128)),
        found(shape(512, 256), shape(512, 8), null, new ScaleGrid(1, 512, 256, 1, 32)),
        found(shape(512, 256), shape(1, 2), null, new ScaleGrid(1, 512, 256, 512, 128)),
        found(shape(7, 512, 96), shape(7, 2, 3), null, new ScaleGrid(7, 512, 96, 256, 32)),
        found(shape(1000), shape(8), null, new ScaleGrid(1, 1, 1000, 1, 128)));
  }

  private static Arguments found(
      TensorShape tensor, TensorShape scales, @Nullable Block block, ScaleGrid grid) {
    return Arguments.of(tensor, scales, block, grid);
  }

  private static TensorShape shape(long... dimensions) {
    return TensorShape.of(dimensions);
  }

  /// The scale of each element. The scales are ordered by matrix, and within a matrix by row of
  /// blocks.
  private record ScaleGrid(
      long matrices, long rows, long columns, long blockRows, long blockColumns) {
    static ScaleGrid single(long elements) {
      return new ScaleGrid(1, 1, elements, 1, elements);
    }

    long scaleOf(long element) {
      long matrix = element / columns / rows;
      long row = element / columns % rows;
      return (matrix * Math.ceilDiv(rows, blockRows) + row / blockRows)
              * Math.ceilDiv(columns, blockColumns)
          + element % columns / blockColumns;
    }
  }

  @ParameterizedTest
  @MethodSource
  void found(TensorShape tensor, TensorShape scales, @Nullable Block block, Object grid) {
    Fit.Found found = (Fit.Found) ScaleShapes.fit(tensor, scales, block);
    assertThat(found.view().elements()).isEqualTo(scales.elements());
    assertThat(found.axes()).hasSize(found.view().rank());
    long elements = tensor.elements().orElseThrow();
    Random random = new Random(1);
    for (int i = 0; i < 300 && elements > 0; i++) {
      long element = i == 0 ? elements - 1 : random.nextLong(elements);
      assertThat(scaleOf(tensor, found, element)).isEqualTo(((ScaleGrid) grid).scaleOf(element));
    }
  }

  private static long scaleOf(TensorShape tensor, Fit.Found found, long element) {
    long columns = product(tensor, found.rowAxis() + 1, tensor.rank());
    long rows = found.rowAxis() < 0 ? 1 : tensor.dimension(found.rowAxis());
    long index = 0;
    for (int i = 0; i < found.axes().size(); i++) {
      QuantisedInput.Axis axis = found.axes().get(i);
      long of =
          switch (Objects.requireNonNull(axis.of())) {
            case MATRIX -> element / columns / rows;
            case ROW -> element / columns % rows;
            case COLUMN -> element % columns;
          };
      index = index * found.view().dimension(i) + of / axis.by();
    }
    return index;
  }

  private static long product(TensorShape shape, int from, int end) {
    long product = 1;
    for (int axis = from; axis < end; axis++) {
      product *= shape.dimension(axis);
    }
    return product;
  }

  static Stream<Arguments> none() {
    return Stream.of(
        none(shape(512, 256), shape(4, 3), STATED, "blocks of 128 x 128 need 4 x 2 scales"),
        none(shape(512, 256), shape(4, 1), STATED, "blocks of 128 x 128 need 4 x 2 scales"),
        none(shape(512, 256), shape(2, 4), STATED, "blocks of 128 x 128 need 4 x 2 scales"),
        none(shape(512, 256), shape(3, 2), null, "weight_block_size"),
        none(shape(5120, 256), shape(2, 2), null, "weight_block_size"),
        none(shape(512, 256), shape(4, 2, 1), STATED, "as many axes"),
        none(shape(512, 256), shape(8), null, "as many axes"),
        none(shape(512, 256), shape(0, 2), null, "weight_block_size"),
        none(shape(7, 512, 256), shape(4, 2), STATED, "as many axes"),
        none(shape(7, 512, 256), shape(1, 4, 2), STATED, "axis 0 differs"),
        none(shape(), shape(3), null, "a scalar has one scale"));
  }

  private static Arguments none(
      TensorShape tensor, TensorShape scales, @Nullable Block block, String reason) {
    return Arguments.of(tensor, scales, block, reason);
  }

  @ParameterizedTest
  @MethodSource
  void none(TensorShape tensor, TensorShape scales, @Nullable Block block, Object reason) {
    assertThat(ScaleShapes.fit(tensor, scales, block))
        .isInstanceOfSatisfying(
            Fit.None.class,
            none ->
                assertThat(none.reason())
                    .contains((String) reason, "scales of shape " + scales, "" + tensor));
  }

  @Test
  void nonsenseIsRefused() {
    assertThatThrownBy(() -> new Block(0, 1)).isInstanceOf(MisuseException.class);
  }
}
