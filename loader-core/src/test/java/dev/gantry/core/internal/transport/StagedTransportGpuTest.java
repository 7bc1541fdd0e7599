// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Transport;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class StagedTransportGpuTest extends TransportContract {
  @Override
  protected Transport transport() {
    return Transport.STAGED;
  }
}
