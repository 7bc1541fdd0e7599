// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.Device;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.EpochChain;
import java.io.IOException;

/// Reads epochs of batches through one ring.
///
/// @param count the number of epochs
record Epochs(
    GantrySession session, Device device, int slots, TransferOptions transfer, int count) {
  static final TransferOptions TRANSFER =
      TransferOptions.defaults().withLimits(EpochBatches.LIMITS);

  @FunctionalInterface
  interface Opener {
    Batches open() throws IOException;
  }

  @FunctionalInterface
  interface Visit {
    void batch(RingBatch<BatchView> batch);
  }

  RingOptions options(Batches batches, boolean poison) {
    return new RingOptions(
        device, slots, batches.slotBytes(), batches.hostBytes(), transfer, poison);
  }

  /// Opens the batches and takes each of them from the ring, without using the values.
  ///
  /// @return the number of samples of all batches
  long run(Opener opener) throws IOException {
    return run(opener, false, _ -> {});
  }

  /// Compares every value with the value that was written. The ring poisons slots when they are
  /// given back, so that a slot that was not filled again fails the check.
  void check(String name, Opener opener, Samples samples) throws IOException {
    SampleDigest digest = new SampleDigest();
    long _ = run(opener, true, digest::add);
    digest.require(name, SampleDigest.of(samples));
  }

  private long run(Opener opener, boolean poison, Visit visit) throws IOException {
    long samples = 0;
    try (Batches batches = opener.open();
        PrefetchRing<BatchView> ring =
            session.ring(
                options(batches, poison), new EpochChain(batches, batches.start(), count - 1))) {
      for (var next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          samples += batch.label().samples();
          visit.batch(batch);
        }
      }
    }
    return samples;
  }
}
