// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import dev.gantry.testing.SecondJvm;
import org.junit.jupiter.api.Order;

@Order(Integer.MAX_VALUE)
class SecondJvmTest extends SecondJvm {
  SecondJvmTest() {
    super("dev.gantry,-" + ShardsJvmTest.PACKAGE);
  }
}
