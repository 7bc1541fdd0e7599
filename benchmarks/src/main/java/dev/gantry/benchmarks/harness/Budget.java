// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.util.function.LongSupplier;

/// Divides the time of a bench among its blocks. The time that one block does not use is left to
/// the later blocks.
public final class Budget {
  private final LongSupplier clock;
  private final long start;
  private final long nanos;
  private double weightLeft;

  /// @param clock the time in nanoseconds
  /// @param weights the sum of the weights of all blocks
  public Budget(double seconds, double weights, LongSupplier clock) {
    this.clock = clock;
    this.nanos = (long) (seconds * 1e9);
    this.weightLeft = weights;
    this.start = clock.getAsLong();
  }

  /// Returns the time of the clock at which the next block should end.
  ///
  /// @param weight the weight of this block
  public long deadline(double weight) {
    long now = clock.getAsLong();
    long left = Math.max(0, start + nanos - now);
    double share = weightLeft <= 0 ? 1 : Math.min(1, weight / weightLeft);
    weightLeft -= weight;
    return now + (long) (left * share);
  }
}
