// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class StagedWriteGpuTest extends WriteContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  @Override
  protected Transport path() {
    return Transport.STAGED;
  }
}
