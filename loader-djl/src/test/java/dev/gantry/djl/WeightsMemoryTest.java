// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.DType;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Loads take no more memory than they must, by the counters of memory in use.
@ExtendWith(NoLeaks.class)
class WeightsMemoryTest {
  private static final long SEED = 1422;
  private static final int SLAB_BYTES = 64 << 10;

  @TempDir private Path folder;
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager(Device.cpu());
  }

  @AfterEach
  void close() {
    manager.close();
  }

  private static MemoryUse mostUsed(Runnable work) {
    LiveResources.forgetMostUsed();
    assertThat(LiveResources.mostUsed()).as("in use before").isEqualTo(MemoryUse.NOTHING);
    work.run();
    return LiveResources.mostUsed();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4095, 70_000, 3_000_001})
  void aLoadTakesItsTensorsAndTheBlocksAtTheirEdges(int length) throws IOException {
    Random random = new Random(SEED + length);
    long bytes = 0;
    WeightsFile file = new WeightsFile();
    // Tensors behind a tensor of an odd length are not aligned, so they are moved.
    for (DType dtype : List.of(DType.U8, DType.F32, DType.BF16, DType.I64, DType.F8_E4M3)) {
      int elements = length == 0 ? 0 : 1 + random.nextInt(length);
      bytes += (long) elements * dtype.bits() / Byte.SIZE;
      file.raw(
          dtype.name(),
          dtype,
          TensorShape.of(elements),
          new byte[elements * dtype.bits() / Byte.SIZE]);
    }
    file.write(folder.resolve("w.safetensors"));
    for (LoadOptions options :
        List.of(
            LoadOptions.defaults(),
            LoadOptions.builder().slabBytes(SLAB_BYTES).optRequestBytes(4096).build(),
            LoadOptions.builder().optCachePolicy(CachePolicy.DIRECT).optThreads(3).build(),
            LoadOptions.builder().optLazy(true).build(),
            LoadOptions.builder().optSelection(TensorSelection.names(List.of("I64"))).build())) {
      try (Weights weights = Weights.open(folder)) {
        boolean all = !options.settings().lazy() && options.selection().isEmpty();
        MemoryUse used = mostUsed(() -> weights.load(manager, options).close());
        // Tensors that are moved exist twice.
        assertThat(used.hostBytes()).isBetween(all ? bytes : 0, 2 * bytes + 16 * 4096);
        assertThat(used.pinnedBytes() + used.deviceBytes()).isZero();
      }
    }
  }

  /// Calls that keep two parts of a load in memory at once: a part is read only after the next
  /// part has its memory.
  private static final class Together extends ForwardingFileCalls {
    private final long begin;
    private final long partBytes;
    private final List<CountDownLatch> begun = new ArrayList<>();
    private volatile boolean isOpen;

    Together(long begin, long partBytes, int parts) {
      super(Libc.INSTANCE);
      this.begin = begin;
      this.partBytes = partBytes;
      for (int i = 0; i < parts; i++) {
        begun.add(new CountDownLatch(1));
      }
    }

    @Override
    public long pread(int fd, MemorySegment target, long length, long offset) {
      int part = (int) ((offset + 4095 - begin) / partBytes);
      if (isOpen && length > 4096 && part < begun.size()) {
        begun.get(part).countDown();
        await(begun.get(Math.min(part + 1, begun.size() - 1)));
      }
      return super.pread(fd, target, length, offset);
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"FLOAT32", "BFLOAT16", "FLOAT64"})
  void inPartsThreeAreThereAtOnce(DataType type) throws IOException {
    int parts = 5;
    WeightsFile file = new WeightsFile();
    for (int i = 0; i < parts; i++) {
      file.raw("w" + i, DType.F8_E4M3, TensorShape.of(SLAB_BYTES), new byte[SLAB_BYTES]);
    }
    Path path = file.write(folder.resolve("w.safetensors"));
    long begin = path.toFile().length() - (long) parts * SLAB_BYTES;
    LoadOptions options =
        LoadOptions.builder().slabBytes(SLAB_BYTES).optThreads(1).optCast(type).build();
    Together calls = new Together(begin, SLAB_BYTES, parts);
    try (GantrySession session = Sessions.over(calls);
        Weights weights = Weights.open(path, session)) {
      calls.isOpen = true;
      MemoryUse used = mostUsed(() -> weights.load(manager, options).close());
      // The engine makes FLOAT64 results in its own memory.
      long results =
          type == DataType.FLOAT64 ? 0 : (long) parts * SLAB_BYTES * type.getNumOfBytes();
      long made = type == DataType.FLOAT64 ? (long) SLAB_BYTES * Float.BYTES : 0;
      assertThat(used.hostBytes())
          .isGreaterThan(results + SLAB_BYTES)
          .isLessThan(results + made + 4L * SLAB_BYTES);
    }
  }

  @Test
  void intoArraysThatAreThereItTakesBuffersAtMost() throws IOException {
    int elements = 3_000_001;
    Path path =
        new WeightsFile()
            .raw("odd", DType.U8, TensorShape.of(elements), new byte[elements])
            .write(folder.resolve("w.safetensors"));
    try (Weights weights = Weights.open(path);
        NDArray array = manager.zeros(new Shape(elements), DataType.UINT8);
        NDArray view = array.get(":")) {
      LoadOptions direct =
          LoadOptions.builder()
              .optCachePolicy(CachePolicy.DIRECT)
              .optThreads(1)
              .optRequestBytes(1 << 20)
              .build();
      assertThat(mostUsed(() -> weights.copyTo(Map.of("odd", view), direct)))
          .isEqualTo(new MemoryUse(0, 0, 1 << 20));
      LoadOptions buffered = LoadOptions.builder().optCachePolicy(CachePolicy.BUFFERED).build();
      assertThat(mostUsed(() -> weights.copyTo(Map.of("odd", view), buffered)))
          .as("straight to its place")
          .isEqualTo(MemoryUse.NOTHING);
    }
  }

  @Test
  void whatDoesNotFitIsRefusedBeforeAnythingIsTaken() throws IOException {
    WeightsFile.writeSparse(folder.resolve("w.safetensors"), "huge", 1L << 43);
    try (Weights weights = Weights.open(folder)) {
      for (LoadOptions options :
          List.of(
              LoadOptions.defaults(), LoadOptions.builder().optCast(DataType.FLOAT32).build())) {
        MemoryUse used =
            mostUsed(() ->
                assertThatThrownBy(() -> weights.load(manager, options))
                    .isInstanceOf(TransferException.class)
                    .hasMessageContainingAll(
                        "bytes of host memory", "only ", " bytes are available", "fewer tensors"));
        assertThat(used).isEqualTo(MemoryUse.NOTHING);
      }
    }
  }

  @Test
  void severalLoadsAddUp() throws IOException {
    new WeightsFile()
        .raw("w", DType.U8, TensorShape.of(100_000), new byte[100_000])
        .write(folder.resolve("w.safetensors"));
    try (Weights weights = Weights.open(folder)) {
      MemoryUse once = mostUsed(() -> weights.load(manager).close());
      MemoryUse both =
          mostUsed(() -> {
            NDList first = weights.load(manager);
            weights.load(manager).close();
            first.close();
          });
      assertThat(both).isEqualTo(once.plus(once));
      assertThat(GantrySession.shared().metrics().mostUsed()).isEqualTo(both);
    }
  }
}
