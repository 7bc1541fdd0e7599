// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.SessionCounters;
import java.time.Duration;
import java.util.Collections;
import java.util.List;

/// The counters of a ring since it was opened.
///
/// @param batches batches that were handed over
/// @param waits how often the consumer found no batch ready, not counting the call after the last
///     batch
/// @param waited how long the consumer waited for batches, in total
/// @param stalls how often the readers had filled all slots and waited for the consumer
/// @param slotsReplaced slots that got new memory because arrays still used their memory when the
///     batch was closed
/// @param hostBytes bytes that host writers wrote
/// @param transfer bytes and reads by transport since the ring was opened, and the number of files
///     that are open now
public record RingStatistics(
    long batches,
    long waits,
    Duration waited,
    long stalls,
    long slotsReplaced,
    long hostBytes,
    TransferReport transfer) {

  /// The statistics of two rings, each of which loads a part of every batch. Batches count once,
  /// and waits add up, since the consumer waits for one ring after the other.
  public RingStatistics beside(RingStatistics other) {
    return new RingStatistics(
        Math.min(batches, other.batches),
        waits + other.waits,
        waited.plus(other.waited),
        stalls + other.stalls,
        slotsReplaced + other.slotsReplaced,
        hostBytes + other.hostBytes,
        transfer
            .plus(other.transfer)
            .withElapsed(Collections.max(List.of(transfer.elapsed(), other.transfer.elapsed()))));
  }

  /// Counts while the ring runs. Thread-safe.
  static final class Counter {
    private final SessionCounters session;
    private long batches;
    private long waits;
    private long waitedNanos;
    private long stalls;
    private long slotsReplaced;
    private long hostBytes;

    /// @param session the counters of the session, which sum all its rings
    Counter(SessionCounters session) {
      this.session = session;
    }

    synchronized void addBatch(long batchHostBytes) {
      session.addBatch();
      batches++;
      hostBytes += batchHostBytes;
    }

    synchronized void addWait(long nanos) {
      session.addWait(nanos);
      waits++;
      waitedNanos += nanos;
    }

    synchronized void addStall() {
      stalls++;
    }

    /// @return whether it is the first replaced slot
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
