// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Reads by the transports that the transfer engine chooses.
@Tag("gpu")
class MemoryReadGpuTest extends DeviceMemoryReadContract {
  @Test
  void remoteFilesComeToo() {
    checkRemoteFiles();
  }
}
