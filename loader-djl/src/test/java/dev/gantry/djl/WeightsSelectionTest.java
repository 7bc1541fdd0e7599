// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Only the selected tensors are loaded, and only their bytes are read.
@ExtendWith(NoLeaks.class)
class WeightsSelectionTest {
  private static final int ROWS = 1024;
  private static final int COLUMNS = 1024;
  private static final int BLOCK = 4096;

  @TempDir private Path folder;
  private NDManager manager;
  private Weights weights;
  private final AtomicReference<TransferReport> report = new AtomicReference<>();

  /// The tensor `layer.big` has 4 MiB, and its element `i` is `i`.
  @BeforeEach
  void open() throws IOException {
    manager = NDManager.newBaseManager();
    ByteBuffer big = ByteBuffer.allocate(ROWS * COLUMNS * 4).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
      big.putInt(i);
    }
    weights =
        Weights.open(
            new WeightsFile()
                .vector("head", DType.F32, 1, 2)
                .raw("layer.big", DType.I32, TensorShape.of(ROWS, COLUMNS), big.array())
                .vector("layer.small", DType.I32, 3)
                .vector("tail", DType.F32, 4)
                .write(folder.resolve("selected.safetensors")));
  }

  @AfterEach
  void close() {
    weights.close();
    manager.close();
  }

  @Test
  void names() {
    // The arrays are in the file's order.
    NDList list = load(TensorSelection.names(List.of("tail", "head")));
    assertThat(list).extracting(NDArray::getName).containsExactly("head", "tail");
    assertThat(list.get("head").toFloatArray()).containsExactly(1, 2);
    assertThat(list.get("tail").toFloatArray()).containsExactly(4);
    assertReadAtMost(4 * BLOCK);
    assertThat(report.get().reads()).isEqualTo(2);
  }

  @Test
  void prefix() {
    NDList list = load(TensorSelection.prefix("layer."));
    assertThat(list).extracting(NDArray::getName).containsExactly("layer.big", "layer.small");
    assertThat(list.get("layer.small").toIntArray()).containsExactly(3);
    assertThat(list.get("layer.big").getInt(ROWS - 1, COLUMNS - 1)).isEqualTo(ROWS * COLUMNS - 1);
  }

  @Test
  void predicate() {
    NDList list = load(TensorSelection.matching(tensor -> tensor.dtype() == DType.F32));
    assertThat(list).extracting(NDArray::getName).containsExactly("head", "tail");
    assertReadAtMost(4 * BLOCK);
  }

  @Test
  void rows() {
    NDArray rows =
        load(TensorSelection.names(List.of("layer.big")).rows("layer.big", 500, 502))
            .singletonOrThrow();
    assertThat(rows.getShape()).isEqualTo(new Shape(2, COLUMNS));
    assertThat(rows.getInt(0, 0)).isEqualTo(500 * COLUMNS);
    assertThat(rows.getInt(1, COLUMNS - 1)).isEqualTo(502 * COLUMNS - 1);
    assertReadAtMost(2 * COLUMNS * 4 + 2 * BLOCK);
    assertThat(report.get().reads()).isEqualTo(1);
  }

  @Test
  void noRowsAtAll() {
    NDArray none =
        load(TensorSelection.names(List.of("layer.big")).rows("layer.big", 7, 7))
            .singletonOrThrow();
    assertThat(none.getShape()).isEqualTo(new Shape(0, COLUMNS));
    assertThat(report.get().bytes()).isZero();
  }

  @Test
  void nothing() {
    assertThat(load(TensorSelection.prefix("unheard of"))).isEmpty();
    assertThat(report.get().bytes()).isZero();
  }

  @Test
  void requestsKeepTheirLimit() {
    Transport path = manager.getDevice().isGpu() ? Transport.STAGED : Transport.HOST;
    NDList list =
        weights.load(
            manager,
            LoadOptions.builder()
                .optRequestBytes(1 << 20)
                .optThreads(3)
                .optTransport(path)
                .optReport(report::set)
                .build());
    assertThat(list).hasSize(4);
    assertThat(report.get().reads()).isEqualTo(5);
    assertThat(report.get().bytesByTransport()).containsOnlyKeys(path);
    assertThat(report.get().files())
        .singleElement()
        .satisfies(file -> assertThat(file.transport()).isEqualTo(path));
    assertThat(report.get().bytes())
        .isBetween(weights.totalBytes(), weights.totalBytes() + 2 * BLOCK);
  }

  @Test
  void whatIsNotThereIsRefusedWithTheNearest() {
    assertThatThrownBy(() -> load(TensorSelection.names(List.of("layer.smal"))))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("layer.smal")
        .hasMessageContaining("layer.small");
    assertThatThrownBy(() -> load(TensorSelection.all().rows("head", 0, 3)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("2 rows");
    assertThat(manager.getManagedArrays()).isEmpty();
    assertThat(report.get()).isNull();
  }

  private NDList load(TensorSelection selection) {
    return weights.load(
        manager, LoadOptions.builder().optSelection(selection).optReport(report::set).build());
  }

  private void assertReadAtMost(long bytes) {
    assertThat(report.get().bytes()).isBetween(1L, bytes);
  }
}
