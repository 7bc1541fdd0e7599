// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.TransferReport;
import java.time.Duration;

/// What a ring has done so far.
///
/// @param batches handed over
/// @param waits how often the consumer found no batch ready, not counting the end
/// @param waited how long the consumer waited then, altogether
/// @param stalls how often the readers had filled all slots and waited for the consumer
/// @param slotsReplaced slots that got other memory, because theirs was still in use when its batch
///     was closed
/// @param hostBytes bytes that the CPU wrote
/// @param transfer bytes and reads by transport, since the ring was opened; its files are those that
///     are open now
public record RingStatistics(
    long batches,
    long waits,
    Duration waited,
    long stalls,
    long slotsReplaced,
    long hostBytes,
    TransferReport transfer) {

  /// Counts while the ring runs. Thread-safe.
  static final class Counter {
    private long batches;
    private long waits;
    private long waitedNanos;
    private long stalls;
    private long slotsReplaced;
    private long hostBytes;

    synchronized void addBatch(long batchHostBytes) {
      batches++;
      hostBytes += batchHostBytes;
    }

    synchronized void addWait(long nanos) {
      waits++;
      waitedNanos += nanos;
    }

    synchronized void addStall() {
      stalls++;
    }

    /// @return whether it is the first
    synchronized boolean addReplacedSlot() {
      slotsReplaced++;
      return slotsReplaced == 1;
    }

    synchronized RingStatistics statistics(TransferReport transfer) {
      Duration waited = Duration.ofNanos(waitedNanos);
      return new RingStatistics(batches, waits, waited, stalls, slotsReplaced, hostBytes, transfer);
    }
  }
}
