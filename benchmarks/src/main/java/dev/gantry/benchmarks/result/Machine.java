// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.List;

/// The machine that a bench ran on.
///
/// @param memoryBytes the size of the machine's memory
/// @param fileSystem the file system that held the files
/// @param gpus the names of the GPUs; empty if there are none
/// @param driver the version of the GPUs' driver; empty if there is none
/// @param cufile cuFile's library and version; empty if there is none
/// @param directAbsence the reason why reads cannot go to a GPU without host memory; empty if they
///     can
public record Machine(
    String cpu,
    int cores,
    long memoryBytes,
    String kernel,
    String fileSystem,
    String java,
    List<String> gpus,
    String driver,
    String cufile,
    String directAbsence) {
  public Machine {
    gpus = List.copyOf(gpus);
  }
}
