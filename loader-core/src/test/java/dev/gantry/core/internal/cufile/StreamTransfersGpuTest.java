// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import org.junit.jupiter.api.Tag;

/// On the libcufile at hand: NVIDIA's on a GPU host, in compatibility mode. Aligned requests only, and by
/// one thread: others fail there, or end the process; so this has a process of its own.
@Tag("gpu-alone")
class StreamTransfersGpuTest extends StreamTransfersContract {
  @Override
  boolean registers() {
    return false;
  }

  @Override
  int alignment() {
    return 4096;
  }
}
