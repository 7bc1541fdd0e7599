// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Transport;
import org.junit.jupiter.api.Tag;

/// Rings that cuFile fills through the CPU.
@Tag("gpu-stub")
class CompatRingStubTest extends DeviceRingContract {
  @Override
  Transport transport() {
    return Transport.COMPAT;
  }
}
