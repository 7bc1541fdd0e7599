// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/// What the kernel says of this process and this machine.
final class Machine {
  private static final long PAGE_BYTES = 4096;

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

  /// Memory of this process that is really there, in bytes.
  static long residentBytes() throws IOException {
    String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ", 3);
    return Long.parseLong(pages[1]) * PAGE_BYTES;
  }

  /// What this process has open, but for what the JVM opens for itself at any time: jars, and the
  /// kernel's figures of memory and processors.
  static List<String> descriptors() throws IOException {
    return NoLeaks.descriptors().stream()
        .filter(target -> !target.matches(".*\\.jar( \\(deleted\\))?|/(proc|sys)/.*"))
        .sorted()
        .toList();
  }

  static long mappings() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.count();
    }
  }
}
