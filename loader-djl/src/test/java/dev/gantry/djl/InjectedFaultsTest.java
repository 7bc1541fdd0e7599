// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.FaultyLibc;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A process whose system calls fail as a seed determines: it reports the failure or continues,
/// works correctly afterwards, and leaks nothing. `-Dgantry.faults=100000` injects so many faults,
/// from another seed each time; `-Dgantry.faults.seed` repeats a run.
@Tag("beside")
class InjectedFaultsTest {
  private static final long FAULTS = Long.getLong("gantry.faults", 400);

  @Test
  void aProcessWhoseCallsFailWorksRightAgainAndLeaksNothing(@TempDir Path folder)
      throws IOException {
    long seed = Long.getLong("gantry.faults.seed", System.nanoTime());
    Path real = folder.toRealPath();
    ChildJvm.Result result =
        ChildJvm.run(
            "512m",
            FaultyLibc.environment(real),
            FaultyProgram.class,
            real.toString(),
            Long.toString(seed),
            Long.toString(FAULTS));
    assertThat(result.requirePassed()).contains("injected faults survived");
    System.out.println(result.out());
  }
}
