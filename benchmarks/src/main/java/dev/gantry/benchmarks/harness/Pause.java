// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

/// A rest between runs.
public final class Pause {
  private Pause() {}

  /// Waits until the driver has cleared the memory that the last run freed, which would make the next run a
  /// tenth slower.
  public static void take() {
    try {
      Thread.sleep(Long.getLong("gantry.bench.pause", 500));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }
}
