// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.BatchBounds;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.util.ArrayList;
import java.util.List;

/// Plans how a slot is filled with the samples of a batch: the reads, the copies within the slot,
/// the CPU's writes, and the offset of each field afterwards.
///
/// Values that are evenly spaced after the read are not copied and become a strided view; other
/// values are packed row by row. Plans depend only on the arguments and the store's answers.
/// Thread-safe.
final class BatchPlanner {
  /// Requests are cut at 4 MiB, so that several readers share a batch. Reads bridge only small gaps, since
  /// in random order the bytes between two samples are not wanted.
  static final PlanLimits LIMITS = new PlanLimits(4L << 20, 16L << 10, 1L << 62);

  private final SampleCatalogue store;
  private final List<Field> fields;
  private final PlanLimits limits;
  private final BatchLayout layout;

  /// @param limits cut the reads; the slab size is ignored, since all bytes go to the slot
  BatchPlanner(SampleCatalogue store, BatchBounds bounds, PlanLimits limits) {
    this.store = store;
    this.fields = store.fields();
    this.limits = new PlanLimits(limits.requestBytes(), limits.gapBytes(), LIMITS.slabBytes());
    this.layout = BatchLayout.of(store, bounds, limits);
  }

  BatchLayout layout() {
    return layout;
  }

  /// @param runs the runs of a batch within the bounds
  /// @param after the dataset's state after this batch
  /// @throws IllegalStateException if the store's values need more bytes than the store said
  BatchPlan<BatchView> plan(List<SampleRun> runs, DatasetState after) {
    int samples = runs.stream().mapToInt(SampleRun::count).sum();
    List<FieldRows> rows = rows(runs);
    List<ExtentRequest> wanted = new ArrayList<>();
    for (FieldRows ofField : rows) {
      wanted.addAll(ofField.pieces());
    }
    ReadPlan plan = Planner.plan(wanted, limits);
    if (plan.allocatedBytes() > layout.rawBytes()) {
      throw new IllegalStateException(
          "a batch reads " + plan.allocatedBytes() + " bytes, of " + layout.rawBytes());
    }
    List<FieldView> views = new ArrayList<>();
    List<Copy2D> copies = new ArrayList<>();
    Gathers.Builder gathers = new Gathers.Builder(wanted.size());
    HostFields made = new HostFields(store, runs, samples, after.epochBefore());
    long packedAt = layout.packedOffset();
    int placed = 0;
    for (int i = 0; i < fields.size(); i++) {
      Field field = fields.get(i);
      if (field.sampleBytes() == 0) {
        views.add(FieldView.dense(field, samples, 0));
      } else if (store.source(i) instanceof FieldSource.HostWritten) {
        views.add(FieldView.dense(field, samples, layout.hostOffset() + made.add(i)));
      } else {
        FieldRows ofField = rows.get(i);
        int end = placed + ofField.pieces().size();
        List<Placement> placements = plan.placements().subList(placed, end);
        ofField.place(placements);
        placed = end;
        int elementBytes = field.dtype().alignmentBytes();
        if (ofField.viewable(elementBytes)) {
          for (int k = 0; k < placements.size(); k++) {
            add(gathers, ofField.pieces().get(k).extent(), placements.get(k).offset());
          }
          views.add(
              FieldView.spaced(
                  field, field.shape(), samples, ofField.first(), ofField.stride() / elementBytes));
        } else {
          ofField.pack(packedAt, copies);
          long to = packedAt;
          for (ExtentRequest piece : ofField.pieces()) {
            add(gathers, piece.extent(), to);
            to += piece.extent().length();
          }
          views.add(FieldView.dense(field, samples, packedAt));
          packedAt += BatchLayout.align(samples * field.sampleBytes(), BatchLayout.ALIGNMENT);
        }
      }
    }
    check(packedAt <= layout.hostOffset() && made.bytes() <= layout.hostBytes());
    HostWrites unwritten = made.bytes() == 0 ? HostWrites.NONE : made.at(layout.hostOffset());
    return new BatchPlan<>(
        plan.reads(),
        unwritten,
        copies,
        gathers.build(),
        List.of(),
        new BatchView(samples, views, after),
        null);
  }

  private static void add(Gathers.Builder gathers, Extent from, long to) {
    gathers.add(from.file(), from.offset(), from.length(), to);
  }

  /// Plans the batch as gathers without reads. The gathers pack the fields from the slot's start
  /// on; see [#plan].
  BatchPlan<BatchView> gathers(List<SampleRun> runs, DatasetState after) {
    int samples = runs.stream().mapToInt(SampleRun::count).sum();
    List<FieldView> views = new ArrayList<>(fields.size());
    Gathers.Builder gathers = new Gathers.Builder(runs.size() * fields.size());
    HostFields made = new HostFields(store, runs, samples, after.epochBefore());
    long at = 0;
    for (int i = 0; i < fields.size(); i++) {
      Field field = fields.get(i);
      long rowBytes = field.sampleBytes();
      if (rowBytes == 0) {
        views.add(FieldView.dense(field, samples, 0));
      } else if (store.source(i) instanceof FieldSource.HostWritten) {
        views.add(FieldView.dense(field, samples, layout.hostOffset() + made.add(i)));
      } else {
        views.add(FieldView.dense(field, samples, at));
        GatherSink sink = new GatherSink(rowBytes, at, gathers);
        for (SampleRun run : runs) {
          store.pieces(i, run, sink);
        }
        at += BatchLayout.align(samples * rowBytes, BatchLayout.ALIGNMENT);
      }
    }
    check(at <= layout.hostOffset() && made.bytes() <= layout.hostBytes());
    HostWrites unwritten = made.bytes() == 0 ? HostWrites.NONE : made.at(layout.hostOffset());
    return new BatchPlan<>(
        List.of(),
        unwritten,
        List.of(),
        gathers.build(),
        List.of(),
        new BatchView(samples, views, after),
        () -> plan(runs, after).withHostWrites(unwritten));
  }

  /// Gathers one field's values end to end, from an offset in the slot on.
  private static final class GatherSink implements SampleCatalogue.PieceSink {
    private final long rowBytes;
    private final Gathers.Builder gathers;
    private long to;

    GatherSink(long rowBytes, long to, Gathers.Builder gathers) {
      this.rowBytes = rowBytes;
      this.to = to;
      this.gathers = gathers;
    }

    @Override
    public void piece(Location file, long offset, int samples) {
      long bytes = Math.multiplyExact(rowBytes, samples);
      gathers.add(file, offset, bytes, to);
      to += bytes;
    }
  }

  private List<FieldRows> rows(List<SampleRun> runs) {
    List<FieldRows> rows = new ArrayList<>();
    for (int i = 0; i < fields.size(); i++) {
      FieldRows ofField = new FieldRows(fields.get(i).sampleBytes());
      rows.add(ofField);
      if (ofField.rowBytes() > 0 && store.source(i) instanceof FieldSource.InFiles) {
        for (SampleRun run : runs) {
          store.pieces(i, run, ofField);
        }
      }
    }
    return rows;
  }

  private static void check(boolean fits) {
    if (!fits) {
      throw new IllegalStateException("a batch does not fit its slot");
    }
  }
}
