// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

/// A rest between runs.
public final class Pause {
  private Pause() {}

  /// So that the driver is done with the memory that the last run freed: it clears it behind the
  /// program's back, and what comes right after is a tenth slower.
  public static void take() {
    try {
      Thread.sleep(Long.getLong("gantry.bench.pause", 500));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }
}
