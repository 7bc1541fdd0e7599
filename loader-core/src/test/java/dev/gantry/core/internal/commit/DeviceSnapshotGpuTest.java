// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("gpu")
class DeviceSnapshotGpuTest extends DeviceSnapshotContract {
  @Override
  SnapshotLimits limits() {
    return new SnapshotLimits(1 << 30, 1 << 30);
  }

  @Override
  Device expectedHome() {
    return DEVICE;
  }

  @Test
  void snapshotsAtOnceKeepTheLimitTogether() {
    List<NewFile> files =
        List.of(new NewFile(folder.resolve("file"), List.of(source(new byte[10_000]))));
    try (SnapshotMemory memory = new SnapshotMemory(new SnapshotLimits(15_000, 0))) {
      try (Snapshot _ = take(memory, files).orElseThrow()) {
        assertThat(take(memory, files)).isEmpty();
      }
      take(memory, files).orElseThrow().close();
    }
  }
}
