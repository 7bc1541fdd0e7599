// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.util.function.LongSupplier;

/// The time that a bench may take, divided among its blocks. Time that one block leaves goes to
/// those after it.
public final class Budget {
  private final LongSupplier clock;
  private final long start;
  private final long nanos;
  private double weightLeft;

  /// @param clock in nanoseconds
  /// @param weights of all blocks together
  public Budget(double seconds, double weights, LongSupplier clock) {
    this.clock = clock;
    this.nanos = (long) (seconds * 1e9);
    this.weightLeft = weights;
    this.start = clock.getAsLong();
  }

  /// When the next block should be done, by the clock.
  ///
  /// @param weight of this block
  public long deadline(double weight) {
    long now = clock.getAsLong();
    long left = Math.max(0, start + nanos - now);
    double share = weightLeft <= 0 ? 1 : Math.min(1, weight / weightLeft);
    weightLeft -= weight;
    return now + (long) (left * share);
  }
}
