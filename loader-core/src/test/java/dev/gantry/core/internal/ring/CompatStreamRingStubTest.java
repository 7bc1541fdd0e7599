// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Transport;
import dev.gantry.core.internal.cufile.CuFileRule;
import dev.gantry.core.internal.transport.TransferOptions;
import org.junit.jupiter.api.Tag;

/// Rings whose slots' streams do the reads, through the CPU.
@Tag("gpu-stub")
class CompatStreamRingStubTest extends DeviceRingContract {
  @Override
  Transport transport() {
    return Transport.COMPAT;
  }

  @Override
  TransferOptions transfer() {
    return super.transfer().withCuFileRule(CuFileRule.STREAMS);
  }
}
