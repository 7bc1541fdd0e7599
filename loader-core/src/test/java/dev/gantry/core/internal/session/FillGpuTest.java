// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class FillGpuTest extends FillContract {
  @Override
  Device device() {
    return new Device.Cuda(0);
  }
}
