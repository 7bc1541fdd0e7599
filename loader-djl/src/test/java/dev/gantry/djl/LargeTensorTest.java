// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import dev.gantry.core.MisuseException;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.OwnProcess;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Tensors of more than 2 GiB, and checkpoints larger than the heap. The files are sparse, with
/// marks in holes.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class LargeTensorTest {
  private static final long BYTES = (9L << 28) + 12_345;
  private static final long[] MARKS = {0, Integer.MAX_VALUE, 1L << 31, BYTES - 1};

  @TempDir private Path folder;

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void isIndexedPastTwoGibibytes(boolean lazy) throws IOException {
    if (!lazy) {
      Machine.assumeAvailable(2 * BYTES);
    }
    Path file = folder.resolve("large.safetensors");
    long dataStart = WeightsFile.writeSparse(file, "large", BYTES);
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      for (int i = 0; i < MARKS.length; i++) {
        out.seek(dataStart + MARKS[i]);
        out.write(i + 1);
      }
    }
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(file)) {
      // libtorch is loaded first, because its own memory must not count.
      manager.create(1).add(1).close();
      long residentBytes = OwnProcess.residentBytes();
      NDArray large = weights.load(manager, Machine.loadOptions(lazy).build()).singletonOrThrow();
      assertThat(large.size()).isEqualTo(BYTES);
      for (int i = 0; i < MARKS.length; i++) {
        assertThat(large.getUint8(MARKS[i])).as("at %s", MARKS[i]).isEqualTo(i + 1);
      }
      assertThat(large.get(new NDIndex("2147483645:2147483650")).toUint8Array())
          .containsExactly(0, 0, 2, 3, 0);
      assertThat(large.get(new NDIndex("-2:")).toUint8Array()).containsExactly(0, 4);
      NDArray column = large.reshape(BYTES, 1);
      assertThat(column.get(new NDIndex(BYTES - 1)).toUint8Array()).containsExactly(4);
      assertThat(column.get(new NDIndex("{}", -BYTES)).toUint8Array()).containsExactly(1);
      assertThatThrownBy(() -> column.get(new NDIndex("{}, :", BYTES - 1)))
          .isInstanceOf(MisuseException.class);
      assertThatThrownBy(large::toByteBuffer).isInstanceOf(MisuseException.class);
      if (lazy) {
        assertThat(NoLeaks.held().hostBytes()).isZero();
        // The bound allows for the touched pages, the blocks around them, and the JVM's own growth
        // at the same time.
        assertThat(OwnProcess.residentBytes()).isLessThan(residentBytes + (64L << 20));
      }
    }
  }

  @Test
  void aHeapOf64MegabytesIsEnough() throws IOException {
    long bytes = 1_500_000_000;
    Machine.assumeAvailable(bytes + (1L << 30));
    Path file = folder.resolve("model.safetensors");
    long dataStart = WeightsFile.writeSparse(file, "model", bytes);
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.seek(dataStart + bytes - 3);
      out.write(new byte[] {1, 2, 3});
    }
    assertThat(
            ChildJvm.run("64m", Map.of(), SmallHeapProgram.class, file.toString()).requirePassed())
        .contains("1500000000 bytes, the last 1000 sum to 6");
  }
}
