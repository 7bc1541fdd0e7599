// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.stub.StubbedJvm;
import dev.gantry.testing.stub.TaggedTests;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// The tests that a GPU host runs, on stubs of the CUDA driver and libcufile.
class StubGpuCheckpointTest {
  @Test
  void allThatNeedsAGpuPassesOnTheStubs() {
    StubbedJvm.Result result =
        StubbedJvm.run(TaggedTests.class, Map.of(), "dev.gantry.formats", "gpu");

    assertThat(result.exit()).as("%s", result).isZero();
    assertThat(result.out()).containsPattern("tests [1-9]\\d*, .*failed 0, skipped 0");
  }
}
