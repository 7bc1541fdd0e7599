// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import org.junit.jupiter.api.Tag;

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
}
