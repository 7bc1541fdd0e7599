// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Transport;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class StagedWriteGpuTest extends WriteContract {
  @Override
  protected Transport transport() {
    return Transport.STAGED;
  }
}
