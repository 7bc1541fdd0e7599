// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import dev.gantry.core.internal.memory.HostMemory;
import org.junit.jupiter.api.Assumptions;

/// What this machine has, and how tests load on it.
final class Machine {
  private Machine() {}

  /// Skips the test where so much memory is not to be had.
  static void assumeAvailable(long bytes) {
    Assumptions.assumeTrue(
        HostMemory.availableBytes().orElse(0) >= bytes,
        () -> "needs " + bytes + " bytes of memory");
  }

  /// Lazily, arrays are of the CPU, whatever DJL's default is.
  static LoadOptions.Builder loadOptions(boolean lazy) {
    LoadOptions.Builder options = LoadOptions.builder().optLazy(lazy);
    return lazy ? options.optDevice(Device.cpu()) : options;
  }
}
