// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.StubbedJvm;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs `bench` with stub libraries in place of a GPU. The test checks which transports are
/// measured, not how fast they are.
@Tag("beside")
class BenchOnStubsTest {
  @TempDir private Path folder;

  @Test
  void aGpusTransportsAreMeasured() {
    ChildJvm.Result run =
        StubbedJvm.run(
            GantryCommand.class,
            Map.of("GANTRY_STUB_CUDA_TOTAL", Long.toString(4L << 30)),
            "bench",
            "--quick",
            "--seconds",
            "600",
            "--repeats",
            "1",
            "--size-mib",
            "4",
            "--folder",
            folder.toString(),
            "--json");
    assertThat(run.exit()).as(run.toString()).isZero();
    Map<?, ?> json = (Map<?, ?>) JsonTree.parse(run.out());
    assertThat(((Map<?, ?>) json.get("run")).get("device")).isEqualTo("cuda:0");
    List<String> names =
        ((List<?>) json.get("points"))
            .stream().map(point -> (String) ((Map<?, ?>) point).get("name")).toList();
    assertThat(names)
        .as(run.toString())
        .contains("PCIe, host to device", "PCIe, device to host")
        .contains("Gantry", "Gantry, staged", "Gantry, compat");
  }
}
