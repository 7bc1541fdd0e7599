// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import dev.gantry.core.internal.memory.HostMemory;
import org.junit.jupiter.api.Assumptions;

/// Checks that the machine has the memory for a test, and returns the options of its loads.
final class Machine {
  private Machine() {}

  /// Skips the test if the machine has less memory available.
  static void assumeAvailable(long bytes) {
    Assumptions.assumeTrue(
        HostMemory.availableBytes().orElse(0) >= bytes,
        () -> "needs " + bytes + " bytes of memory");
  }

  /// Returns load options; lazy arrays are on the CPU, whatever DJL's default device is.
  static LoadOptions.Builder loadOptions(boolean lazy) {
    LoadOptions.Builder options = LoadOptions.builder().optLazy(lazy);
    return lazy ? options.optDevice(Device.cpu()) : options;
  }
}
