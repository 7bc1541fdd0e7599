// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import dev.gantry.testing.SecondJvm;
import org.junit.jupiter.api.Order;

/// The tests of remote files, most of which wait for a server.
@Order(Integer.MAX_VALUE)
class RemoteJvmTest extends SecondJvm {
  static final String PACKAGES =
      "dev.gantry.core.internal.http,dev.gantry.core.internal.cache,dev.gantry.core.internal.hub";

  RemoteJvmTest() {
    super(PACKAGES);
  }
}
