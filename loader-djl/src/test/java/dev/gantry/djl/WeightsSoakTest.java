// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.testing.OwnProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Repeated loads leave no resource. `benchmarks/measure soak` repeats loads for hours, with other
/// work at the same time.
@ExtendWith(NoLeaks.class)
class WeightsSoakTest {
  private static final int ROUNDS = 400;
  private static final int THREADS = 2;
  private static final int ONES = 200_000;

  @TempDir private Path folder;

  /// Each thread also reads and closes views of the other thread's arrays, so that memory is freed
  /// on another thread than it was allocated on.
  @Test
  void twoThreadsAtOnce() throws IOException, InterruptedException, ExecutionException {
    byte[] ones = new byte[ONES];
    Arrays.fill(ones, (byte) 1);
    Path file =
        new WeightsFile()
            .raw("ones", DType.U8, TensorShape.of(ONES), ones)
            .vector("unaligned", DType.BF16, 1, 2, 3)
            .vector("odd", DType.U8, 1)
            .vector("f", DType.F32, 4, 5)
            .write(folder.resolve("soak.safetensors"));
    Queue<NDArray> views = new ConcurrentLinkedQueue<>();
    try (NDManager shared = NDManager.newBaseManager();
        Weights weights = Weights.open(file);
        ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
      List<Future<?>> ends = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        ends.add(
            threads.submit(() -> {
              for (int round = 0; round < ROUNDS; round++) {
                round(round, weights, shared, views);
              }
            }));
      }
      for (Future<?> end : ends) {
        var _ = end.get();
      }
    }
    views.forEach(WeightsSoakTest::checkAndClose);
    NoLeaks.assertNothingIsHeld();
  }

  private static void round(int round, Weights weights, NDManager shared, Queue<NDArray> views) {
    LoadOptions.Builder options = Machine.loadOptions(round % 3 == 0);
    if (round % 2 == 0) {
      options.optCast(DataType.FLOAT32);
    }
    try (NDManager manager = round % 5 == 0 ? NDManager.newBaseManager() : shared.newSubManager()) {
      NDList list = weights.load(manager, options.build());
      assertThat(list.get("ones").toType(DataType.INT64, false).sum().getLong()).isEqualTo(ONES);
      assertThat(list.get("unaligned").toType(DataType.FLOAT32, false).toFloatArray())
          .containsExactly(1, 2, 3);
      NDArray view = list.get("f").get(new NDIndex("1:"));
      view.detach();
      views.add(view);
      if (round % 7 == 0) {
        list.close();
      }
    }
    NDArray other = views.poll();
    if (other != null) {
      checkAndClose(other);
    }
  }

  private static void checkAndClose(NDArray view) {
    assertThat(view.toFloatArray()).containsExactly(5);
    view.close();
  }

  /// The number of descriptors must not change. Mappings and memory have a tolerance, because the
  /// JVM may take some for compiled code and garbage collection at any time; a load that kept its
  /// mapping 40 times, or its memory once, would exceed it.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void fortyTimesLeaveTheProcessAsItWas(boolean lazy) throws IOException {
    long loadBytes = 128L << 20;
    Path file = folder.resolve("again.safetensors");
    WeightsFile.writeSparse(file, "zeros", loadBytes);
    // The first loads add classes, compiled code, and libtorch's threads and buffers.
    loadAndClose(file, loadBytes, lazy, 10);
    System.gc();
    long residentBytes = OwnProcess.residentBytes();
    List<String> descriptors = OwnProcess.programsDescriptors();
    int mappings = OwnProcess.mappings().size();
    loadAndClose(file, loadBytes, lazy, 40);
    System.gc();
    assertThat(OwnProcess.programsDescriptors()).isEqualTo(descriptors);
    assertThat(OwnProcess.mappings()).hasSizeLessThan(mappings + 30);
    assertThat(OwnProcess.residentBytes()).isLessThan(residentBytes + loadBytes / 2);
  }

  private static void loadAndClose(Path file, long bytes, boolean lazy, int times) {
    LoadOptions options = Machine.loadOptions(lazy).build();
    for (int i = 0; i < times; i++) {
      try (NDManager manager = NDManager.newBaseManager();
          Weights weights = Weights.open(file)) {
        NDArray zeros = weights.load(manager, options).singletonOrThrow();
        // The maximum reads every page, also of a mapping.
        assertThat(zeros.max().toUint8Array()).containsExactly(0);
        LiveResources.Snapshot held = NoLeaks.held();
        assertThat(held.hostBytes() + held.deviceBytes() + held.mappedBytes())
            .isGreaterThanOrEqualTo(bytes);
      }
    }
  }
}
