// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.List;

/// The machine that a bench ran on.
///
/// @param memoryBytes of the machine
/// @param fileSystem that held the files
/// @param gpus names; empty where there are none
/// @param driver of the GPUs; empty where there is none
/// @param cufile library and version; empty where there is none
/// @param directAbsence why bytes cannot go past the CPU to a GPU; empty where they can
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
