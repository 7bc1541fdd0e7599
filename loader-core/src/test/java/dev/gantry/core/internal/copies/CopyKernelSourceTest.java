// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import dev.gantry.core.internal.convert.KernelSourceTest;
import org.junit.jupiter.api.Test;

class CopyKernelSourceTest {
  @Test
  void thePtxWasMadeOfTheSource() throws Exception {
    KernelSourceTest.requireMade(CopyKernels.class, "copies.cu", "copies");
  }
}
