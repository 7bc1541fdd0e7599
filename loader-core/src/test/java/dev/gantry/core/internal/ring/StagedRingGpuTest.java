// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Transport;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class StagedRingGpuTest extends DeviceRingContract {
  @Override
  Transport transport() {
    return Transport.STAGED;
  }
}
