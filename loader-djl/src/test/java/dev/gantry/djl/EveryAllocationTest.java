// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.HeapFaults;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/// Workers fail at one of their heap allocations after the other, in a JVM of their own. The test
/// takes minutes.
@EnabledIfSystemProperty(named = "gantry.every.allocation", matches = "\\d+")
class EveryAllocationTest {
  @Test
  void eachOperationEndsAndTheNextIsRight(@TempDir Path folder) throws IOException {
    ChildJvm.Result result =
        ChildJvm.run(
            "768m",
            HeapFaults.environment(folder),
            EveryAllocationProgram.class,
            Files.createDirectory(folder.resolve("data")).toString(),
            System.getProperty("gantry.every.allocation"));
    assertThat(result.requirePassed()).contains("gantry-saver: ");
    System.out.println(result.out());
  }
}
