// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Loads of the same bytes onto the host and onto all GPUs of the machine.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class ReplicasGpuTest {
  private static final int LENGTH = 40_000_001;

  @TempDir Path folder;

  @Test
  void theHostAndTwoGpusHaveTheFile() {
    Path file = TestFiles.write(folder.resolve("file"), 3, LENGTH);
    List<ExtentRequest> wanted =
        List.of(
            new ExtentRequest(new Extent(file, 0, 7), 1),
            new ExtentRequest(new Extent(file, 4097, 30_000_000), 256),
            new ExtentRequest(new Extent(file, 35_000_001, 5_000_000), 2));
    int count = CudaDriver.load().orElseThrow(AssertionError::new).deviceCount();
    Device first = new Device.Cuda(0);
    List<Device> devices =
        count > 1 ? List.of(Device.HOST, first, new Device.Cuda(1)) : List.of(first, Device.HOST);
    try (GantrySession gantry = GantrySession.open()) {
      for (int turn = 0; turn < 3; turn++) {
        List<Loaded> loaded = gantry.loadOnEach(wanted, devices, TransferOptions.defaults());
        for (Loaded each : loaded) {
          assertThat(TestFiles.firstDifference(each, wanted)).isEmpty();
          each.close();
        }
      }
    }
  }
}
