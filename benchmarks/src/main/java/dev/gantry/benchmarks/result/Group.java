// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

/// The kinds of points.
public enum Group {
  /// The ceilings of the machine: nothing is faster.
  CEILING("ceilings"),
  /// A file's tensors into memory.
  LOAD("loads"),
  /// The first load of a fresh process.
  FIRST_LOAD("first load of a process"),
  /// Loads by size of a request and number of threads.
  GRID("request size and threads"),
  /// cuFile's ways to read, by size of a request, alignment and depth. Recorded results have it; `bench` measures it no
  /// more.
  CUFILE("cuFile: threads, batches, streams");

  private final String title;

  Group(String title) {
    this.title = title;
  }

  public String title() {
    return title;
  }
}
