// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.djl.engine.Engine;
import dev.gantry.testing.ChildJvm;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FailedKernelTest {
  @TempDir private Path folder;

  @Test
  void aSaveAfterAKernelHasFailedIsRefusedAndDoesNotEndTheProcess() {
    assumeTrue(Engine.getInstance().getGpuCount() > 0, "needs DJL on CUDA");
    assertThat(
            ChildJvm.run("256m", Map.of(), FailedKernelProgram.class, folder.toString())
                .requirePassed())
        .contains("refused: ")
        .contains("CUDA_ERROR_ASSERT");
  }
}
