// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.HeapFaults;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Each thread that works with a GPU fails at some of its heap allocations, in a JVM of its own.
/// With `-Dgantry.every.allocation=5000` it fails at each of them, which takes minutes.
class EveryAllocationStubTest {
  /// How many allocations of each operation fail.
  private static final int MOST = Integer.getInteger("gantry.every.allocation", 5);

  @Test
  @Tag("beside")
  void eachOperationEndsAndTheNextIsRight(@TempDir Path folder) throws IOException {
    Map<String, String> environment = new HashMap<>(HeapFaults.environment(folder));
    environment.put("GANTRY_STUB_CUDA_DEVICES", "2");
    String out =
        StubbedJvm.run(
                EveryAllocationStubProgram.class,
                environment,
                Files.createDirectory(folder.resolve("data")).toString(),
                Integer.toString(MOST))
            .requirePassed();
    assertThat(out).contains("caller converts: ").doesNotContain("left by");
    System.out.println(out);
  }
}
