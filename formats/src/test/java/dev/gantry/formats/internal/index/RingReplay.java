// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.testing.TestFiles;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/// Takes an epoch of indexed files from a ring, slowly, and compares every value of every batch
/// with the value that the sequential reader decodes.
///
/// @param device the device of the slots
/// @param settle waits for the device's queued work
record RingReplay(
    GantrySession session, Device device, int slots, TransferOptions transfer, Runnable settle) {
  private static final byte POISON = (byte) 0xDB;

  /// The number of fields of several samples that stayed where they were read, with a pitch, and
  /// of fields that were packed.
  record Views(int strided, int dense) {
    Views plus(Views more) {
      return new Views(strided + more.strided, dense + more.dense);
    }
  }

  Views check(RandomDataset dataset, OrderOptions order, PlanLimits limits) {
    List<List<List<byte[]>>> decoded = dataset.decoded(session);
    TfRecordCatalogue store = dataset.open(session);
    try (EpochBatches batches = EpochBatches.of(store, order, limits);
        PrefetchRing<BatchView> opened =
            session.ring(options(batches), batches.from(batches.start()))) {
      EpochOrder epoch = EpochOrder.of(store.fileSamples(), order, 0);
      assertThat(batches.batchesPerEpoch()).hasValue(epoch.batches());
      Views views = new Views(0, 0);
      List<Region> regions = new ArrayList<>();
      Deque<RingBatch<BatchView>> held = new ArrayDeque<>();
      long checked = 0;
      for (Optional<RingBatch<BatchView>> next = opened.next();
          next.isPresent();
          next = opened.next()) {
        held.add(next.get());
        regions.add(next.get().region(0, batches.slotBytes()));
        if (held.size() == slots - 1) {
          views = views.plus(check(held.remove(), epoch.batch(checked++), decoded));
        }
      }
      while (!held.isEmpty()) {
        views = views.plus(check(held.remove(), epoch.batch(checked++), decoded));
      }
      assertThat(checked).isEqualTo(epoch.batches());
      settle.run();
      regions.forEach(RingReplay::requirePoison);
      return views;
    }
  }

  private RingOptions options(EpochBatches batches) {
    return new RingOptions(device, slots, batches.slotBytes(), batches.hostBytes(), transfer, true);
  }

  /// Checks a batch and closes it.
  private static Views check(
      RingBatch<BatchView> batch, List<SampleRun> runs, List<List<List<byte[]>>> decoded) {
    List<List<byte[]>> samples = new ArrayList<>();
    for (SampleRun run : runs) {
      int first = Math.toIntExact(run.first());
      samples.addAll(decoded.get(run.file()).subList(first, first + run.count()));
    }
    int strided = 0;
    try (batch) {
      BatchView view = batch.label();
      assertThat(view.samples()).isEqualTo(samples.size());
      for (int field = 0; field < view.fields().size(); field++) {
        boolean spaced = check(batch, view.fields().get(field), field, samples);
        strided += spaced && samples.size() > 1 ? 1 : 0;
      }
      int several = samples.size() > 1 ? view.fields().size() : 0;
      return new Views(strided, several - strided);
    }
  }

  /// @return whether there are bytes between the samples
  private static boolean check(
      RingBatch<BatchView> batch, FieldView view, int field, List<List<byte[]>> samples) {
    int rowBytes = samples.getFirst().get(field).length;
    long elementBytes = view.dtype().bits() / Byte.SIZE;
    long pitch = view.strides().getFirst() * elementBytes;
    assertThat(view.offset() % elementBytes).isZero();
    assertThat(pitch).isGreaterThanOrEqualTo(rowBytes);
    byte[] bytes =
        TestFiles.bytes(batch.region(view.offset(), (samples.size() - 1) * pitch + rowBytes));
    for (int row = 0; row < samples.size(); row++) {
      int from = Math.toIntExact(row * pitch);
      assertThat(Arrays.copyOfRange(bytes, from, from + rowBytes))
          .as("row %s of %s in batch %s", row, view, batch.number())
          .isEqualTo(samples.get(row).get(field));
    }
    return pitch > rowBytes;
  }

  private static void requirePoison(Region slot) {
    byte[] expected = new byte[Math.toIntExact(slot.length())];
    Arrays.fill(expected, POISON);
    assertThat(Arrays.mismatch(TestFiles.bytes(slot), expected)).isEqualTo(-1);
  }
}
