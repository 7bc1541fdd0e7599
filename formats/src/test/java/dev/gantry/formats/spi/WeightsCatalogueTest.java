// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class WeightsCatalogueTest {
  /// A tensor whose elements are all the same four bytes can have any size.
  @Test
  void tensorsOfMoreBytesThanALongCountsAreAFaultOfTheirFile() {
    Location file = Location.of(Path.of("file"));
    List<StoredTensor> tensors =
        IntStream.range(0, 16)
            .mapToObj(i ->
                new StoredTensor(
                    "t" + i,
                    DType.U8,
                    TensorShape.of(1L << 58, 2),
                    new Extent(file, 7, 1),
                    new Encoding.Strided(List.of(0L, 0L), ByteOrder.LITTLE_ENDIAN)))
            .toList();
    assertThatThrownBy(
            () -> new WeightsCatalogue("any", List.of(file), tensors, Map.of(), List.of()))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageStartingWith("file: offset 7: size-overflow: the tensors up to 't15'");
  }
}
