// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Transport;
import org.junit.jupiter.api.Tag;

/// Rings whose batches a kernel fetches from registered files.
@Tag("gpu")
class MappedRingGpuTest extends DeviceRingContract {
  @Override
  Transport transport() {
    return Transport.MAPPED;
  }
}
