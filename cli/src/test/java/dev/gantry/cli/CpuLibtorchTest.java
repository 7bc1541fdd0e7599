// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Placement;
import dev.gantry.djl.TensorMemory;
import dev.gantry.djl.Weights;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Tests a machine that has a GPU, while DJL has a libtorch for the CPU. A stub library stands in
/// for the GPU.
class CpuLibtorchTest {
  @TempDir private Path folder;
  private Path file;

  @BeforeEach
  void make() throws IOException {
    file = folder.resolve("weights.safetensors");
    RandomCheckpoint.make(file, 300_000, 3, "F32");
  }

  private static ChildJvm.Result run(Class<?> main, String... arguments) {
    return StubbedJvm.run(main, Map.of("GANTRY_STUB_CUDA_DEVICES", "1"), arguments);
  }

  /// Tries each call that puts arrays on the GPU, and a load to plain device memory.
  public static final class Loads {
    private Loads() {}

    public static void main(String[] arguments) {
      try (NDManager manager = NDManager.newBaseManager(Device.gpu(0));
          NDManager host = NDManager.newBaseManager(Device.cpu());
          Weights weights = Weights.open(Path.of(arguments[0]))) {
        LoadOptions onGpu = LoadOptions.builder().optDevice(Device.gpu(0)).build();
        say("load", () -> weights.load(manager));
        say("optDevice", () -> weights.load(host, onGpu));
        say("replicated", () -> weights.load(host, Placement.replicated(Device.gpu(0))));
        NDList arrays = weights.load(host);
        NDArray first = arrays.getFirst();
        say("toDevice", () -> first.toDevice(Device.gpu(0), true));
        try (TensorMemory memory = weights.loadMemory(onGpu)) {
          System.out.println("loadMemory: " + memory.tensors().size() + " tensors");
        }
      }
    }

    private static void say(String way, Supplier<Object> load) {
      try {
        System.out.println(way + ": " + load.get());
      } catch (DeviceUnavailableException refused) {
        System.out.println(way + ": refused, " + refused.getMessage());
      }
    }
  }

  @Test
  void aLoadToTheGpuSaysThatLibtorchIsForTheCpu() {
    ChildJvm.Result loads = run(Loads.class, file.toString());
    assertThat(loads.exit()).as("%s", loads).isZero();
    assertThat(loads.out().lines())
        .filteredOn(line -> line.contains(": refused, "))
        .hasSize(4)
        .allSatisfy(line ->
            assertThat(line)
                .contains("gpu(0)")
                .contains("is for the CPU")
                .contains("libtorch_cuda.so")
                .contains("docs/on-a-gpu.md"));
    assertThat(loads.out()).contains("loadMemory: 3 tensors");
  }

  @Test
  void doctorWarnsOfAGpuBesideALibtorchForTheCpu() {
    ChildJvm.Result doctor = run(GantryCommand.class, "doctor");
    assertThat(doctor.exit()).as("%s", doctor).isZero();
    assertThat(doctor.out())
        .containsPattern("libtorch +cpu 2\\.7\\.1.*, from the class path")
        .contains("cpu-libtorch");
  }

  @Test
  void doctorDoesNotWarnWhereNoGpuIs() {
    CommandLineRun doctor = CommandLineRun.of("doctor");
    assertThat(doctor.out()).contains("libtorch ").doesNotContain("cpu-libtorch");
  }
}
