// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import org.junit.jupiter.api.Tag;

/// On the libcufile at hand: NVIDIA's on a GPU host, in compatibility mode.
@Tag("gpu")
class StreamTransfersGpuTest extends StreamTransfersContract {
  @Override
  boolean registers() {
    return false;
  }
}
