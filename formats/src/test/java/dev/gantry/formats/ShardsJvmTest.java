// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import dev.gantry.testing.SecondJvm;
import org.junit.jupiter.api.Order;

/// The tests that kill or fail writers of shards.
@Order(Integer.MAX_VALUE)
class ShardsJvmTest extends SecondJvm {
  static final String PACKAGE = "dev.gantry.formats.shards";

  ShardsJvmTest() {
    super(PACKAGE);
  }
}
