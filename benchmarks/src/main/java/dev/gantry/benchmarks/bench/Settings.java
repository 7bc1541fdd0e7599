// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.core.Device;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The settings of a bench.
///
/// @param folder an empty folder for files, which the caller removes
/// @param file the only file to load; null for files of random bytes
/// @param sizes the sizes of the files to make, in bytes; empty for sizes that suit the machine
/// @param repeats how often each point is measured, if there is time
/// @param command the command line that the user gave
public record Settings(
    Path folder,
    @Nullable Path file,
    List<Long> sizes,
    Device device,
    boolean quick,
    int repeats,
    int budgetSeconds,
    String version,
    String command) {
  public Settings {
    sizes = List.copyOf(sizes);
  }
}
