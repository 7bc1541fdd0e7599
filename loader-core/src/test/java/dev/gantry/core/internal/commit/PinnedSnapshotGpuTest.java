// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class PinnedSnapshotGpuTest extends DeviceSnapshotContract {
  @Override
  SnapshotLimits limits() {
    return SnapshotLimits.DEFAULT;
  }

  @Override
  Device expectedHome() {
    return Device.HOST;
  }
}
