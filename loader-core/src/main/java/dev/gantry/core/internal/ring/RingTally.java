package dev.gantry.core.internal.ring;

import dev.gantry.core.TransferReport;
import java.time.Duration;

/// Counts what a ring does. Thread-safe.
final class RingTally {
  private long batches;
  private long waits;
  private long waitedNanos;
  private long stalls;
  private long slotsReplaced;
  private long hostBytes;

  synchronized void batch(long made) {
    batches++;
    hostBytes += made;
  }

  synchronized void waited(long nanos) {
    waits++;
    waitedNanos += nanos;
  }

  synchronized void stall() {
    stalls++;
  }

  /// @return whether it is the first
  synchronized boolean replaced() {
    slotsReplaced++;
    return slotsReplaced == 1;
  }

  synchronized RingStatistics statistics(TransferReport transfer) {
    Duration waited = Duration.ofNanos(waitedNanos);
    return new RingStatistics(batches, waits, waited, stalls, slotsReplaced, hostBytes, transfer);
  }
}
