// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/// Files whose records state their origin, and the contents of their batches.
final class Streams {
  /// A record's `id` is its file's number times this, plus the record's number.
  static final long FILE = 1000;

  private Streams() {}

  /// The records of a batch, and the state after the batch.
  record Batch(List<Long> ids, DatasetState after) {}

  static ExampleBuilder example(long id) {
    return example(id, 0);
  }

  /// @param padding the bytes of a feature that no batch has; more than 2 KiB make a long record,
  ///     which the stream leaves in the file for the decoders
  static ExampleBuilder example(long id, int padding) {
    byte[] text = new byte[(int) (id % 7)];
    Arrays.fill(text, (byte) id);
    ExampleBuilder example = new ExampleBuilder().int64s("id", id).bytes("text", text);
    return padding == 0 ? example : example.bytes("padding", new byte[padding]);
  }

  static Path write(
      GantrySession session, Path folder, int file, long records, Compression compression) {
    return write(session, folder, file, records, compression, 0);
  }

  static Path write(
      GantrySession session,
      Path folder,
      int file,
      long records,
      Compression compression,
      int padding) {
    Path path = folder.resolve("part-" + file);
    try (TfRecordWriter writer = TfRecordWriter.create(session, path, compression)) {
      for (long i = 0; i < records; i++) {
        writer.write(example(file * FILE + i, padding).toBytes());
      }
      writer.commit();
    }
    return path;
  }

  static OrderOptions order(int batchSize, LastBatch last, int rank, int world) {
    return new OrderOptions(batchSize, last, new Shuffle.None(), 1, 1, rank, world);
  }

  /// Returns all batches from a state on. Up to three of them are in flight at once, as in a ring,
  /// and their writers run from the last to the first.
  static List<Batch> run(Batches batches, DatasetState from) {
    List<Batch> all = new ArrayList<>();
    Deque<BatchPlan<BatchView>> ahead = new ArrayDeque<>();
    try (BatchPlanSource<BatchView> source = batches.from(from)) {
      boolean more = true;
      while (more) {
        Optional<BatchPlan<BatchView>> next = source.next();
        next.ifPresent(ahead::add);
        more = next.isPresent();
        if (ahead.size() == 3) {
          all.add(make(ahead.remove()));
        }
      }
      while (!ahead.isEmpty()) {
        all.add(make(ahead.remove()));
      }
    }
    return all;
  }

  private static Batch make(BatchPlan<BatchView> plan) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment slot = arena.allocate(Math.max(1, plan.hostWrites().bytes()));
      for (HostWrites.HostWriter writer : plan.hostWrites().writers().reversed()) {
        writer.write(slot);
      }
      BatchView label = plan.label();
      FieldView ids = label.fields().getFirst();
      List<Long> found = new ArrayList<>();
      for (int i = 0; i < label.samples(); i++) {
        long id = slot.get(ValueLayout.JAVA_LONG_UNALIGNED, ids.offset() + 8L * i);
        checkText(label.fields(), slot, i, id);
        found.add(id);
      }
      return new Batch(found, label.after());
    }
  }

  /// Checks that the text belongs to the same record and is padded with -1.
  private static void checkText(List<FieldView> fields, MemorySegment slot, int row, long id) {
    if (fields.size() < 2) {
      return;
    }
    FieldView text = fields.get(1);
    long length = text.shape().dimension(1);
    for (long i = 0; i < length; i++) {
      byte found = slot.get(ValueLayout.JAVA_BYTE, text.offset() + row * length + i);
      byte expected = i < id % 7 ? (byte) id : -1;
      if (found != expected) {
        throw new AssertionError("text of " + id + " at " + i + " is " + found);
      }
    }
  }

  static List<List<Long>> ids(List<Batch> batches) {
    return batches.stream().map(Batch::ids).toList();
  }
}
