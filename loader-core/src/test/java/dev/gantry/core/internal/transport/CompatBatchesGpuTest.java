// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.cufile.CuFileRule;
import org.junit.jupiter.api.Tag;

/// Loads by cuFile's batches, through the CPU.
@Tag("gpu-alone")
class CompatBatchesGpuTest extends CompatTransportContract {
  @Override
  TransferOptions options() {
    return super.options().withCuFileRule(CuFileRule.BATCHES);
  }
}
