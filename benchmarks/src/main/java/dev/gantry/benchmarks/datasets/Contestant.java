// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

/// One of several ways to do the same work.
///
/// @param expected what the work must return: proof that it skipped no part
record Contestant(String name, long expected, Work work) {
  /// Returns how much was done: samples, or bytes.
  @FunctionalInterface
  interface Work {
    long run() throws Exception;
  }
}
