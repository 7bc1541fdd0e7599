// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.examples.DecodedLayout;
import dev.gantry.formats.internal.examples.ExampleDecoder;
import dev.gantry.formats.internal.examples.RecordSink;
import dev.gantry.formats.internal.examples.RowDecoder;
import dev.gantry.formats.internal.order.OrderOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Returns one rank's batches of one epoch, beginning with any batch.
///
/// Every rank passes over all records, in rounds of one batch for each rank, and keeps the records of its
/// own batch. Since every rank sees whole rounds, all ranks agree on the number of rounds, and complete the
/// last one, which may be short, in the same way.
final class StreamSource implements BatchPlanSource<BatchView> {
  private final StreamedBatches dataset;
  private final OrderOptions order;
  private final DecodedLayout layout;

  /// Measures records on the asking thread, if the batch's shape depends on them.
  private final Optional<ExampleDecoder> measure;

  /// The buffers of the batches under way.
  private final Set<RecordBuffer> taken = ConcurrentHashMap.newKeySet();

  private DatasetState state;
  private @Nullable Records stream;
  private boolean ended;

  StreamSource(StreamedBatches dataset, DatasetState state) {
    this.dataset = dataset;
    this.order = dataset.order();
    this.state = state;
    layout = dataset.parser().layout(order.batchSize());
    measure =
        dataset.parser().hasRowsOfTheLongest()
            ? Optional.of(dataset.parser().decoder(state.epoch()))
            : Optional.empty();
  }

  @Override
  public Optional<BatchPlan<BatchView>> next() {
    if (ended) {
      return Optional.empty();
    }
    RecordBuffer buffer = dataset.buffers().take();
    taken.add(buffer);
    return Cleanup.orUndo(
        () -> {
          if (fill(buffer)) {
            return Optional.of(plan(buffer));
          }
          ended = true;
          giveBack(buffer);
          closeStream();
          return Optional.empty();
        },
        () -> giveBack(buffer));
  }

  /// Reads a round and keeps this rank's records.
  ///
  /// @return whether the records make a batch
  private boolean fill(RecordBuffer buffer) {
    Records open = open();
    StreamCursor begin = open.cursor();
    long round = (long) order.world() * order.batchSize();
    long left = open.left().orElse(round);
    Part mine =
        left < round && order.lastBatch() == LastBatch.KEEP
            ? share(left)
            : new Part((long) order.rank() * order.batchSize(), order.batchSize());
    long count = 0;
    while (count < round && next(open, buffer)) {
      StreamRecord record = open.record();
      if (count >= mine.first() && count - mine.first() < mine.count()) {
        buffer.add(record);
      }
      dataset.read(record.length());
      count++;
    }
    if (count == round) {
      state = dataset.after(state, open.cursor());
      return true;
    }
    StreamCursor end = open.cursor();
    if (count > 0) {
      switch (order.lastBatch()) {
        case DROP -> buffer.clear();
        case KEEP -> keep(buffer, begin, mine, count);
        case PAD -> pad(buffer, mine.first(), count);
      }
    }
    // The state is now at the end of the epoch, where no record follows.
    state = dataset.after(state, end);
    return buffer.size() > 0;
  }

  /// Goes to the stream's next record.
  ///
  /// @param before the batch's records before the next record
  private boolean next(Records open, RecordBuffer before) {
    try {
      return open.next();
    } catch (MalformedFileException fault) {
      throw first(before, before.size(), (_, _) -> {}, fault);
    }
  }

  private void read(RecordBuffer buffer, int from, int to, RecordSink sink) {
    try {
      dataset.buffers().read(buffer, from, to, sink);
    } catch (MalformedFileException fault) {
      throw first(buffer, from, sink, fault);
    }
  }

  /// Returns the fault of the batch's first faulty record. The record that has failed may not be
  /// the first one, since another thread may still have to read an earlier record.
  ///
  /// @param before how many of the batch's records come before those that the calling thread reads
  private MalformedFileException first(
      RecordBuffer buffer, int before, RecordSink sink, MalformedFileException found) {
    try {
      dataset.buffers().read(buffer, 0, before, sink);
      return found;
    } catch (MalformedFileException fault) {
      return fault;
    }
  }

  /// A range of a round's records.
  private record Part(long first, long count) {}

  /// Returns this rank's share of a short round; the ranks' shares differ by at most one record.
  private Part share(long records) {
    int rank = order.rank();
    long all = records / order.world();
    long more = records % order.world();
    return new Part(rank * all + Math.min(rank, more), all + (rank < more ? 1 : 0));
  }

  /// Keeps this rank's share of the last records. If there are fewer records than ranks, a rank
  /// without a record takes one from the epoch's beginning.
  ///
  /// @param read the records that the buffer has already
  private void keep(RecordBuffer buffer, StreamCursor begin, Part read, long count) {
    Part share = share(count);
    if (share.count() == 0) {
      buffer.clear();
      long first = order.rank() - count % order.world();
      copy(dataset.begin(), first % (before() + count), 1, buffer);
    } else if (share.first() != read.first() || share.count() != buffer.size()) {
      buffer.clear();
      copy(begin, share.first(), share.count(), buffer);
    }
  }

  /// Fills the batch up with records from the epoch's beginning, repeatedly if needed.
  private void pad(RecordBuffer buffer, long mine, long count) {
    long position = before() + mine + buffer.size();
    copy(dataset.begin(), position % (before() + count), order.batchSize() - buffer.size(), buffer);
  }

  /// How many records of the epoch come before the current round.
  private long before() {
    return state.batch() * order.batchSize() * order.world();
  }

  /// Reads records again; after the epoch's last one comes its first.
  ///
  /// @param skip how many records to skip, from `from` on
  private void copy(StreamCursor from, long skip, long count, RecordBuffer buffer) {
    long toSkip = skip;
    long left = count;
    StreamCursor at = from;
    while (left > 0) {
      boolean found = false;
      try (Records again = dataset.again(state.epoch(), at)) {
        while (left > 0 && again.next()) {
          found = true;
          if (toSkip > 0) {
            toSkip--;
          } else {
            buffer.add(again.record());
            left--;
          }
        }
      }
      if (!found) {
        throw new IllegalStateException("records that were there are gone");
      }
      at = dataset.begin();
    }
  }

  private Records open() {
    Records open = stream;
    if (open == null) {
      open = dataset.stream(state);
      stream = open;
    }
    return open;
  }

  private BatchPlan<BatchView> plan(RecordBuffer buffer) {
    int samples = buffer.size();
    long[] rows = layout.rows();
    measure.ifPresent(decoder -> {
      read(buffer, 0, samples, (record, _) -> decoder.extend(record, rows));
    });
    HostWrites made = new HostWrites(0, layout.bytes(), writers(buffer, rows));
    BatchView view = new BatchView(samples, layout.views(samples, rows), state);
    return new BatchPlan<>(List.of(), made, List.of(), view);
  }

  /// Makes writers of equal parts of the samples; the last writer to finish returns the buffer to
  /// the pool.
  private List<HostWrites.HostWriter> writers(RecordBuffer buffer, long[] rows) {
    int samples = buffer.size();
    int parts = Math.min(dataset.parts(), samples);
    long epoch = state.epoch();
    AtomicInteger left = new AtomicInteger(parts);
    List<HostWrites.HostWriter> writers = new ArrayList<>(parts);
    for (int part = 0; part < parts; part++) {
      int from = (int) ((long) samples * part / parts);
      int to = (int) ((long) samples * (part + 1) / parts);
      writers.add(target -> {
        ExampleDecoder decoder = dataset.parser().decoder(epoch);
        read(buffer, from, to, new RowDecoder(decoder, target, layout, rows, dataset.straight()));
        if (left.decrementAndGet() == 0) {
          giveBack(buffer);
        }
      });
    }
    return writers;
  }

  /// Returns a buffer to the pool, but only once, since afterwards another batch may have it.
  private void giveBack(RecordBuffer buffer) {
    if (taken.remove(buffer)) {
      dataset.buffers().giveBack(buffer);
    }
  }

  private void closeStream() {
    Records open = stream;
    stream = null;
    if (open != null) {
      open.close();
    }
  }

  /// Also returns the buffers of batches that were never made to the pool.
  @Override
  public void close() {
    ended = true;
    try {
      closeStream();
    } finally {
      taken.forEach(this::giveBack);
    }
  }
}
