// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.LiveResources;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Files that are mapped instead of read.
@ExtendWith(NoLeaks.class)
class LazyLoadTest {
  private static final LoadOptions LAZY = LoadOptions.builder().optLazy(true).build();

  @TempDir private Path folder;
  private NDManager manager;
  private Path file;

  @BeforeEach
  void open() throws IOException {
    manager = NDManager.newBaseManager(Device.cpu());
    file =
        new WeightsFile()
            .vector("f", DType.F32, 1, 2, 3, 4)
            .vector("b", DType.U8, 5, 6, 7)
            .vector("unaligned", DType.F64, 8, 9)
            .write(folder.resolve("lazy.safetensors"));
  }

  @AfterEach
  void close() {
    manager.close();
  }

  @Test
  void whatIsWrittenToATensorNeverReachesTheFile() throws IOException {
    byte[] before = Files.readAllBytes(file);
    try (Weights weights = Weights.open(file)) {
      NDList list = weights.load(manager, LAZY);
      list.get("f").muli(10);
      list.get("b").set(new NDIndex("1"), 99);
      list.get("unaligned").addi(1);
      assertThat(list.get("f").toFloatArray()).containsExactly(10, 20, 30, 40);
      assertThat(list.get("b").toUint8Array()).containsExactly(5, 99, 7);
      assertThat(list.get("unaligned").toDoubleArray()).containsExactly(9, 10);
      // The writes do not change the tensors of another load either.
      assertThat(weights.load(manager, LAZY).get("f").toFloatArray()).containsExactly(1, 2, 3, 4);
    }
    assertThat(Files.readAllBytes(file)).isEqualTo(before);
  }

  @Test
  void theTensorsOutliveTheFilesName() throws IOException {
    NDList list = Weights.open(file).load(manager, LAZY);
    Files.delete(file);
    assertThat(list.get("f").sum().getFloat()).isEqualTo(10);
  }

  @Test
  void mapsOnlyWhatIsSelected() throws IOException {
    Path large = folder.resolve("large.safetensors");
    WeightsFile.writeSparse(large, "zeros", 1L << 30);
    LoadOptions options =
        LoadOptions.builder()
            .optLazy(true)
            .optSelection(TensorSelection.names(List.of("zeros")).rows("zeros", 5000, 6000))
            .build();
    NDArray rows = Weights.open(large).load(manager, options).singletonOrThrow();
    assertThat(rows.size()).isEqualTo(1000);
    assertThat(LiveResources.snapshot().mappedBytes()).isLessThanOrEqualTo(2 * 4096);
    assertThat(NoLeaks.held().hostBytes()).isZero();
  }

  @Test
  void aTransportIsRefusedSinceNothingIsRead() {
    LoadOptions.Builder both = LoadOptions.builder().optLazy(true).optTransport(Transport.GDS);
    assertThatThrownBy(both::build)
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("optTransport says how a load reads, and optLazy reads nothing");
  }

  @Test
  void castsTakeTheBytesOutOfTheMapping() {
    LoadOptions options = LoadOptions.builder().optLazy(true).optCast(DataType.FLOAT16).build();
    NDArray cast = Weights.open(file).load(manager, options).get("f");
    assertThat(cast.getDataType()).isEqualTo(DataType.FLOAT16);
    assertThat(cast.toType(DataType.FLOAT32, true).toFloatArray()).containsExactly(1, 2, 3, 4);
  }
}
