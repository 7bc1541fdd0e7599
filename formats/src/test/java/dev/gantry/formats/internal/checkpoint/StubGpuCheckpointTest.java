// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.testing.stub.StubbedJvm;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Runs the tests that need a GPU on stubs of the CUDA driver and libcufile.
@Tag("beside")
class StubGpuCheckpointTest {
  @Test
  void allThatNeedsAGpuPassesOnTheStubs() {
    StubbedJvm.runTests(
        Map.of("GANTRY_STUB_CUDA_DEVICES", "2"), "dev.gantry.formats", "gpu", "gpu-stub");
  }
}
