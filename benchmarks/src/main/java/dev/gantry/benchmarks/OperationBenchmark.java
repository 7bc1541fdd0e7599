// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Activation;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// Operations on arrays of 16 elements, where the cost of a call is all that counts: on an array that
/// DJL made, on one that was loaded, and on the result of an operation on that.
///
/// `benchmarks/jmh OperationBenchmark`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
    value = 2,
    jvmArgsAppend = {"--enable-native-access=ALL-UNNAMED", "-Dai.djl.offline=true"})
public class OperationBenchmark {
  private static final int ELEMENTS = 16;

  public enum Origin {
    DJL,
    LOADED_F32,
    RESULT_F32,
    LOADED_BF16
  }

  @Param private Origin origin = Origin.DJL;

  private final NDManager manager = NDManager.newBaseManager(Device.cpu());
  private NDArray array = manager.create(0);

  @Setup
  public void makeArray() throws IOException {
    array =
        switch (origin) {
          case DJL -> manager.create(new float[ELEMENTS]);
          case LOADED_F32 -> loaded(LoadOptions.defaults());
          case RESULT_F32 -> loaded(LoadOptions.defaults()).add(1);
          case LOADED_BF16 -> loaded(LoadOptions.builder().optCast(DataType.BFLOAT16).build());
        };
  }

  private NDArray loaded(LoadOptions options) throws IOException {
    Path file = Files.createTempFile("gantry-operation-", ".safetensors");
    try {
      var _ = RandomCheckpoint.make(file, (long) ELEMENTS * Float.BYTES, 1, "F32");
      try (Weights weights = Weights.open(file)) {
        return weights.load(manager, options).singletonOrThrow();
      }
    } finally {
      Files.delete(file);
    }
  }

  @TearDown
  public void close() {
    manager.close();
  }

  @Benchmark
  public void add() {
    array.add(array).close();
  }

  @Benchmark
  public void exp() {
    array.exp().close();
  }

  @Benchmark
  public void relu() {
    Activation.relu(array).close();
  }
}
