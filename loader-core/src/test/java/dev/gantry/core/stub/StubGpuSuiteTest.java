package dev.gantry.core.stub;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

/// The tests that a GPU host runs, on the stubs.
class StubGpuSuiteTest {
  @Test
  void allThatNeedsAGpuPassesOnTheStubs() {
    StubbedJvm.Result result =
        StubbedJvm.run(TaggedTests.class, Map.of(), "dev.gantry.core", "gpu", "gpu-stub");

    assertThat(result.exit()).as("%s", result).isZero();
    assertThat(result.out()).containsPattern("tests [1-9]\\d*, .*failed 0, skipped 0");
  }
}
