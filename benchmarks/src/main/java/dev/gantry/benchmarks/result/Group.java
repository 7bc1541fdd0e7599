// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

/// The kind of a point.
public enum Group {
  /// The ceilings of the machine, which no load can exceed.
  CEILING("ceilings"),
  /// Loads of a file's tensors into memory.
  LOAD("loads"),
  /// The first load of a fresh process.
  FIRST_LOAD("first load of a process"),
  /// Loads by request size and number of threads.
  GRID("request size and threads"),
  /// cuFile's APIs for reads, by request size, alignment and depth. Older recorded results have
  /// this group; `bench` no longer measures it.
  CUFILE("cuFile: threads, batches, streams");

  private final String title;

  Group(String title) {
    this.title = title;
  }

  public String title() {
    return title;
  }
}
