// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertAll;

import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.testing.ChildJvm;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Runs the tests that need a GPU on the stubs.
@Tag("beside")
class StubGpuSuiteTest {
  private static final String INTERNAL = "dev.gantry.core.internal.";

  /// The tests of rings run in a JVM of their own, because those in which a device fails leave
  /// memory that it may still use.
  private static final String RINGS = INTERNAL + "ring";

  /// The newest libcufile is used for rings, libcufile 1.15 for all other tests, and both for
  /// loads and saves.
  @Test
  void allThatNeedsAGpuPassesOnTheStubs() {
    Map<String, String> newest = StubbedJvm.newCuFile();
    try (ExecutorService both = Executors.newFixedThreadPool(2)) {
      Future<?> others = both.submit(() -> runTests(Map.of(), "dev.gantry.core,-" + RINGS));
      Future<?> rings = both.submit(() -> runTests(newest, RINGS));
      Future<?> loads =
          both.submit(() ->
              runTests(
                  newest, INTERNAL + "transport," + INTERNAL + "session," + INTERNAL + "commit"));
      assertAll(others::get, rings::get, loads::get);
    }
  }

  private static void runTests(Map<String, String> environment, String packages) {
    Map<String, String> all = new HashMap<>(environment);
    all.put("GANTRY_STUB_CUDA_DEVICES", "2");
    StubbedJvm.runTests(all, packages, "gpu", "gpu-stub");
  }

  /// The program of the next test.
  static final class Start {
    public static void main(String[] arguments) {
      System.out.println("cuInit " + JCudaDriver.cuInit(0));
      CuFile cuFile = CuFile.find().orElseThrow(AssertionError::new);
      System.out.println("version " + cuFile.version());
      cuFile.openDriver();
    }
  }

  @Test
  void theEnvironmentMakesTheMachine() {
    ChildJvm.Result result =
        StubbedJvm.run(
            Start.class,
            Map.of(
                "GANTRY_STUB_CUDA_DEVICES", "0",
                "GANTRY_STUB_CUFILE_VERSION", "1140",
                "GANTRY_STUB_CUFILE_FAIL", "cuFileDriverClose:1:5006,cuFileDriverOpen:1:5011:999"));

    assertThat(result.exit()).as("%s", result).isEqualTo(1);
    assertThat(result.out()).contains("cuInit 100\n").contains("1.14");
    assertThat(result.err()).contains("CUDA 999 CUDA_ERROR_UNKNOWN");
  }
}
