// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.HeapFaults;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/// Each worker of a GPU fails at one of its heap allocations after the other, in a JVM of its own.
/// The test takes minutes.
@EnabledIfSystemProperty(named = "gantry.every.allocation", matches = "\\d+")
class EveryAllocationStubTest {
  @Test
  void eachOperationEndsAndTheNextIsRight(@TempDir Path folder) throws IOException {
    String out =
        StubbedJvm.run(
                EveryAllocationStubProgram.class,
                HeapFaults.environment(folder),
                Files.createDirectory(folder.resolve("data")).toString(),
                System.getProperty("gantry.every.allocation"))
            .requirePassed();
    assertThat(out).contains("caller converts: ").doesNotContain("left by");
    System.out.println(out);
  }
}
