// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import java.nio.file.Path;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Chunks that have as many elements as their tensor, but do not cover it.
class ChunkCoverTest {
  private static final Location FILE = Location.of(Path.of("file"));

  /// Returns a tensor with a chunk of one column and two rows at each of these columns.
  private static DcpMetadata.Tensor tensor(int columns, int... from) {
    return new DcpMetadata.Tensor(
        "t",
        DType.F32,
        TensorShape.of(2, columns),
        IntStream.of(from)
            .mapToObj(at ->
                new DcpMetadata.Chunk(
                    TensorShape.of(0, at), TensorShape.of(2, 1), new Extent(FILE, 0, 8)))
            .toList());
  }

  @Test
  void aChunkThatComesTwiceDoesNotFillTheGapOfAnother() {
    new ChunkCover(FILE).requireWhole(tensor(3, 2, 0, 1));
    MalformedFileException fault =
        catchThrowableOfType(
            MalformedFileException.class,
            () -> new ChunkCover(FILE).requireWhole(tensor(3, 2, 0, 2)));
    assertThat(fault.kind()).isEqualTo("chunks-overlap");
  }
}
