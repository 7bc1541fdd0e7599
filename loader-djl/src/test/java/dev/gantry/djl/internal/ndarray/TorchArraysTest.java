// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.util.passthrough.PassthroughNDManager;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.torch.Releases;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class TorchArraysTest {
  private final WrappedMemory memory = new WrappedMemory();

  @AfterEach
  void nothingIsLeftBehind() {
    assertThat(Releases.pending()).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void whatIsMadeInAdvanceLeavesNothing(DType dtype) {
    TorchArrays.wrapOnce(dtype);
  }

  @Test
  void closingTheArrayReleasesOnce() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray array = memory.count(manager, DType.F32, 2, 3);
      assertThat(array.getName()).isEqualTo("wrapped");
      assertThat(array.toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
      array.close();
      assertThat(memory.released).hasValue(1);
      array.close();
    }
    assertThat(memory.released).hasValue(1);
  }

  /// An array that DJL makes may lie right behind the memory that other processes read.
  @ParameterizedTest
  @CsvSource({"F32, 15, true", "F32, 16, false", "C64, 31, true", "C64, 32, false"})
  void aViewBeginsWithinTheMemory(DType dtype, int offset, boolean isView) {
    TensorShape shape = TensorShape.of(2, 2);
    try (Arena arena = Arena.ofConfined();
        NDManager manager = NDManager.newBaseManager(ai.djl.Device.cpu())) {
      MemorySegment bytes = arena.allocate(64, 64);
      NDArray whole =
          WrappedMemory.wrap(
              manager, bytes.address(), Device.HOST, dtype, shape, "weight", () -> {});
      NDArray other =
          manager.create(bytes.asSlice(offset, 4).asByteBuffer(), new Shape(4), DataType.INT8);
      assertThat(TorchArrays.address(other)).isEqualTo(bytes.address() + offset);
      assertThat(Guards.isView((GantryNDArray) whole, other)).isEqualTo(isView);
    }
  }

  @Test
  void closingTheManagerReleases() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray _ = memory.count(manager, DType.BF16, 4);
      NDArray _ = memory.count(manager, DType.F32, 4).reshape(2, 2);
    }
    assertThat(memory.released).hasValue(2);
  }

  @Test
  void aViewOutlivesItsParentItsListAndItsManager() {
    try (NDManager outer = NDManager.newBaseManager()) {
      NDArray view;
      try (NDManager inner = outer.newSubManager()) {
        NDArray parent = memory.count(inner, DType.BF16, 3, 4);
        view = parent.get(new NDIndex("1"));
        view.attach(outer);
        NDArray second = parent.reshape(4, 3);
        new NDList(parent, second).close();
        assertThat(memory.released).hasValue(0);
      }
      assertThat(memory.released).hasValue(0);
      assertThat(view.toFloatArray()).containsExactly(5, 6, 7, 8);
      view.close();
      assertThat(memory.released).hasValue(1);
    }
  }

  @Test
  void leavesAScopeWhenToldTo() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray kept;
      try (NDScope scope = new NDScope()) {
        scope.suppressNotUsedWarning();
        NDArray parent = memory.count(manager, DType.BF16, 4);
        kept = parent.reshape(2, 2);
        NDScope.unregister(kept);
      }
      assertThat(memory.released).hasValue(0);
      assertThat(kept.toFloatArray()).containsExactly(1, 2, 3, 4);
      kept.close();
    }
    assertThat(memory.released).hasValue(1);
  }

  @Test
  void aClosedManagerRefusesAndTheMemoryStaysWithItsOwner() {
    NDManager manager = NDManager.newBaseManager();
    manager.close();
    try (Arena arena = Arena.ofConfined()) {
      long address = arena.allocate(16, 64).address();
      assertThatThrownBy(() -> wrap(manager, address)).isInstanceOf(IllegalStateException.class);
    }
    assertThat(memory.released).hasValue(0);
  }

  @Test
  void refusesManagersOfOtherEngines() {
    assertThatThrownBy(() -> wrap(PassthroughNDManager.INSTANCE, 64))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("PyTorch");
    assertThat(memory.released).hasValue(0);
  }

  @Test
  void emptyArraysAndScalars() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray empty = memory.count(manager, DType.BF16, 2, 0);
      assertThat(empty.toFloatArray()).isEmpty();
      assertThat(empty.toString()).contains("(2, 0)");
      NDArray scalar = memory.count(manager, DType.BF16);
      assertThat(scalar.toFloatArray()).containsExactly(1);
      assertThat(scalar.toString()).contains("1");
    }
    assertThat(memory.released).hasValue(2);
  }

  /// The samples of a batch have the layout of a file, with other bytes between them.
  @ParameterizedTest
  @EnumSource(names = {"F32", "BF16", "U8", "I64"})
  void rowsThatDoNotLieEndToEnd(DType dtype) {
    int rows = 3;
    int columns = 4;
    int pitch = 7;
    try (NDManager manager = NDManager.newBaseManager();
        NDArray whole = memory.count(manager, dtype, rows, pitch)) {
      long address;
      Device device;
      try (ArrayMemory memoryOfWhole = ArrayMemory.of(whole)) {
        address = memoryOfWhole.address();
        device = memoryOfWhole.device();
      }
      NDArray strided =
          TorchArrays.wrap(
              manager,
              address,
              device,
              dtype,
              TensorShape.of(rows, 2, columns / 2),
              new long[] {pitch, columns / 2, 1},
              "strided",
              false,
              () -> {});
      float[] expected = {1, 2, 3, 4, 8, 9, 10, 11, 15, 16, 17, 18};
      assertThat(strided.toType(DataType.FLOAT32, true).toFloatArray()).containsExactly(expected);
      assertThat(strided.duplicate().toByteBuffer()).isEqualTo(strided.toByteBuffer());
      assertThat(strided.flatten().toType(DataType.FLOAT32, true).toFloatArray())
          .containsExactly(expected);
      assertThat(strided.get(1).toType(DataType.FLOAT32, true).toFloatArray())
          .containsExactly(8, 9, 10, 11);
      assertThat(strided.toType(DataType.FLOAT32, true).sum().getFloat()).isEqualTo(114);
    }
  }

  @Test
  void refusesStridesThatAreNone() {
    try (NDManager manager = NDManager.newBaseManager()) {
      for (long[] strides : new long[][] {{1}, {4, -1}, {Long.MAX_VALUE, 1}}) {
        assertThatThrownBy(() ->
                TorchArrays.wrap(
                    manager,
                    64,
                    Device.HOST,
                    DType.F32,
                    TensorShape.of(3, 4),
                    strides,
                    null,
                    false,
                    memory.released::incrementAndGet))
            .isInstanceOf(MisuseException.class);
      }
    }
    assertThat(memory.released).hasValue(0);
  }

  @Test
  void anArrayOfMoreThanTwoGibibytes(@TempDir Path folder) throws Exception {
    long rows = 3L << 20;
    Path file = folder.resolve("sparse");
    try (Arena arena = Arena.ofShared();
        FileChannel channel =
            FileChannel.open(
                file,
                StandardOpenOption.CREATE_NEW,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE);
        NDManager manager = NDManager.newBaseManager()) {
      // Only the touched pages take memory.
      MemorySegment segment = channel.map(FileChannel.MapMode.READ_WRITE, 0, rows * 1024, arena);
      segment.setAtIndex(ValueLayout.JAVA_SHORT, rows * 512 - 1, (short) 0x4049);
      NDArray array =
          WrappedMemory.wrap(
              manager,
              segment.address(),
              Device.HOST,
              DType.BF16,
              TensorShape.of(rows, 512),
              null,
              memory.released::incrementAndGet);
      assertThat(array.get(rows - 1, 511).toFloatArray()).containsExactly(3.140625f);
      assertThat(array.get(new NDIndex("-1, 510:")).toFloatArray()).containsExactly(0, 3.140625f);
      assertThatThrownBy(() -> array.toByteBuffer())
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("buffer");
      assertThatThrownBy(() -> array.toByteBuffer(true)).isInstanceOf(MisuseException.class);
    }
    assertThat(memory.released).hasValue(1);
  }

  @Test
  void threadsWrapAndCloseAtOnce() throws Exception {
    int rounds = 2_000;
    try (NDManager shared = NDManager.newBaseManager();
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Callable<Void> work =
          () -> {
            for (int i = 0; i < rounds; i++) {
              NDArray array = memory.count(shared, DType.BF16, 8);
              NDArray view = array.reshape(2, 4);
              array.close();
              assertThat(view.sum().toFloatArray()).containsExactly(36);
              view.close();
            }
            return null;
          };
      List<Future<Void>> running = new ArrayList<>(threads.invokeAll(List.of(work, work)));
      for (Future<Void> future : running) {
        future.get();
      }
    }
    assertThat(memory.released).hasValue(2 * rounds);
  }

  private void wrap(NDManager manager, long address) {
    WrappedMemory.wrap(
        manager,
        address,
        Device.HOST,
        DType.F32,
        TensorShape.of(4),
        null,
        memory.released::incrementAndGet);
  }
}
