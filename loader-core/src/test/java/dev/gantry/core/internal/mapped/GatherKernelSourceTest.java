// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.convert.KernelSourceTest;
import org.junit.jupiter.api.Test;

class GatherKernelSourceTest {
  @Test
  void thePtxWasMadeOfTheSource() throws Exception {
    KernelSourceTest.requireMade(GatherKernel.class, "gather.cu", "gather");
  }
}
