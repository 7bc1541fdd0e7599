// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.HeapFaults;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Workers find no heap at one of their allocations after the other, in a JVM of their own. It takes minutes.
@Tag("soak")
class EveryAllocationTest {
  private static final int MOST = Integer.getInteger("gantry.every.allocation", 40);

  @Test
  void eachOperationEndsAndTheNextIsRight(@TempDir Path folder) throws IOException {
    ChildJvm.Result result =
        ChildJvm.run(
            "768m",
            HeapFaults.environment(folder),
            EveryAllocationProgram.class,
            Files.createDirectory(folder.resolve("data")).toString(),
            Integer.toString(MOST));
    assertThat(result.requirePassed()).contains("gantry-saver: ");
    System.out.println(result.out());
  }
}
