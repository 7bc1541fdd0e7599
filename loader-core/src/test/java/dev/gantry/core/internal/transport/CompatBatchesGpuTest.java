// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.cufile.CuFileRule;
import org.junit.jupiter.api.Tag;

/// Loads by cuFile's batches, through the CPU.
@Tag("gpu")
class CompatBatchesGpuTest extends CompatTransportGpuTest {
  @Override
  TransferOptions options() {
    return super.options().withCuFileRule(CuFileRule.BATCHES);
  }
}
