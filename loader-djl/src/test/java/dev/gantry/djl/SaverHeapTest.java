// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Saves copy no parameters to the heap.
class SaverHeapTest {
  private static final int ARRAYS = 4;

  @TempDir private Path folder;

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aHeapOf64MegabytesIsEnoughFor200(boolean async) {
    // The test needs memory for the model, for its snapshot and for the restored values.
    Machine.assumeAvailable(1L << 30);
    Path checkpoints = folder.resolve("checkpoints");
    assertThat(
            ChildJvm.run(
                    "64m",
                    Map.of(),
                    SaveProgram.class,
                    checkpoints.toString(),
                    Integer.toString(ARRAYS),
                    Boolean.toString(async))
                .requirePassed())
        .contains("means 0.0 1.0 2.0 3.0");
    assertThat(checkpoints.resolve("gantry-step-1", "model.safetensors"))
        .satisfies(file -> assertThat(file.toFile().length()).isGreaterThan(ARRAYS * 50_000_000L));
  }
}
