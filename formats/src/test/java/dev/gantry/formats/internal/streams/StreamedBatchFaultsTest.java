// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.streams.Streams.Batch;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.CorruptionPolicy;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// Damaged records, files that change and reads that fail: which batch fails, and which fault is reported.
class StreamedBatchFaultsTest extends StreamedBatchesFixture {
  /// Damages the data of one record. All records must have the same length.
  private static void damage(Path file, int record, int records) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[bytes.length / records * record + TfRecordReader.HEADER_BYTES] ^= 1;
    Files.write(file, bytes);
  }

  /// Writes records of the same length, without the text, whose length would differ from record to
  /// record.
  private Path alike(int file, int records) {
    Path path = folder.resolve("alike-" + file);
    try (TfRecordWriter writer = TfRecordWriter.create(session, path, Compression.NONE)) {
      for (int i = 0; i < records; i++) {
        writer.write(new ExampleBuilder().int64s("id", 100L + 10 * file + i).toBytes());
      }
      writer.commit();
    }
    return path;
  }

  @Test
  void faultsAreCountedOverAllFilesAndOverAResumption() throws IOException {
    List<Path> files = List.of(alike(0, 4), alike(1, 4), alike(2, 4));
    damage(files.get(0), 1, 4);
    damage(files.get(2), 2, 4);
    try (StreamedBatches batches =
        open(files, OrderOptions.of(2), OPTIONS.withCorruption(new CorruptionPolicy.Skip(2)))) {
      List<Batch> all = Streams.run(batches, batches.start());
      assertThat(Streams.ids(all))
          .containsExactly(
              List.of(100L, 102L),
              List.of(103L, 110L),
              List.of(111L, 112L),
              List.of(113L, 120L),
              List.of(121L, 123L));
      assertThat(batches.statistics().skipped()).isEqualTo(Map.of("data-crc", 2L));
      assertThat(batches.statistics().records()).isEqualTo(10);
      assertThat(Streams.run(batches, all.getFirst().after())).isEqualTo(all.subList(1, 5));
    }
    try (StreamedBatches batches =
        open(files, OrderOptions.of(2), OPTIONS.withCorruption(new CorruptionPolicy.Skip(1)))) {
      assertThatThrownBy(() -> Streams.run(batches, batches.start()))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("alike-2")
          .hasMessageContaining("data-crc: record 2:");
      // The state counts the first fault, so only one more is allowed.
      DatasetState state = firstBatch(batches);
      assertThatThrownBy(() -> Streams.run(batches, state)).hasMessageContaining("alike-2");
    }
  }

  /// The padding of the last batch is read again from the beginning of the epoch, where a fault
  /// was counted already.
  @Test
  void whatIsReadAgainCountsNoFaultTwice() throws IOException {
    List<Path> files = List.of(alike(0, 5));
    damage(files.getFirst(), 0, 5);
    try (StreamedBatches batches =
        open(
            files,
            Streams.order(3, LastBatch.PAD, 0, 1),
            OPTIONS.withCorruption(new CorruptionPolicy.Skip(1)))) {
      assertThat(Streams.ids(Streams.run(batches, batches.start())))
          .containsExactly(List.of(101L, 102L, 103L), List.of(104L, 101L, 102L));
      assertThat(batches.statistics().skipped()).isEqualTo(Map.of("data-crc", 1L));
    }
  }

  @Test
  void aRecordThatIsNotAsItsFeaturesSayFailsItsBatchOnly() {
    Path file = folder.resolve("mixed");
    try (TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
      writer.write(new ExampleBuilder().int64s("id", 1).toBytes());
      writer.write(new ExampleBuilder().int64s("other", 1).toBytes());
      writer.commit();
    }
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(1), OPTIONS);
        BatchPlanSource<BatchView> source = batches.from(batches.start());
        Arena arena = Arena.ofConfined()) {
      MemorySegment slot = arena.allocate(batches.slotBytes());
      BatchPlan<BatchView> first = source.next().orElseThrow();
      BatchPlan<BatchView> second = source.next().orElseThrow();
      assertThat(source.next()).isEmpty();
      first.hostWrites().writers().forEach(maker -> maker.write(slot));
      assertThatThrownBy(() -> second.hostWrites().writers().getFirst().write(slot))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(file.toString())
          .hasMessageContaining("missing-feature: record 1: the record lacks feature 'id'");
    }
  }

  /// The test runs the writers of a batch from the last to the first, so a later record fails
  /// before the first one is decoded.
  @Test
  void theFirstRecordThatIsNotAsItsFeaturesSayIsTheFault() {
    Path file = folder.resolve("others");
    try (TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
      for (int i = 0; i < 8; i++) {
        writer.write(new ExampleBuilder().int64s(i == 0 ? "id" : "other", i).toBytes());
      }
      writer.commit();
    }
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(8), OPTIONS)) {
      assertThatThrownBy(() -> Streams.run(batches, batches.start()))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("missing-feature: record 1: the record lacks feature 'id'");
    }
  }

  private static int longBytes(Path file, int records) throws IOException {
    return Math.toIntExact(Files.size(file) / records);
  }

  private static void change(Path file, int at) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[at] ^= 1;
    Files.write(file, bytes);
  }

  @Test
  void ofSeveralDamagedRecordsOfABatchTheFirstIsTheFault() throws IOException {
    // The records are copies of one record, so all have the same length.
    Path file = Streams.write(session, folder, 0, 1, Compression.NONE, 3000);
    byte[] one = Files.readAllBytes(file);
    byte[] all = new byte[8 * one.length];
    for (int i = 0; i < 8; i++) {
      System.arraycopy(one, 0, all, i * one.length, one.length);
    }
    all[2 * one.length + 100] ^= 1;
    all[5 * one.length + 100] ^= 1;
    Files.write(file, all);
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(8), OPTIONS);
        BatchPlanSource<BatchView> source = batches.from(batches.start());
        Arena arena = Arena.ofConfined()) {
      MemorySegment slot = arena.allocate(batches.slotBytes());
      BatchPlan<BatchView> plan = source.next().orElseThrow();
      assertThatThrownBy(() -> plan.hostWrites().writers().getLast().write(slot))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(file.toString())
          .hasMessageContaining("offset " + 2 * one.length + ": data-crc: record 2:");
    }
    // The stream finds a fault in the header of record 6, which comes after the faults of the
    // records that it left in the file.
    change(file, 6 * one.length);
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(8), OPTIONS);
        BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      assertThatThrownBy(source::next).hasMessageContaining("data-crc: record 2:");
    }
  }

  @Test
  void aFileThatChangesBetweenItsHeaderAndItsRecordIsAnError() throws IOException {
    Path file = writeLong(0, 4);
    int record = longBytes(file, 4);
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(4), OPTIONS);
        BatchPlanSource<BatchView> source = batches.from(batches.start());
        Arena arena = Arena.ofConfined()) {
      MemorySegment slot = arena.allocate(batches.slotBytes());
      BatchPlan<BatchView> plan = source.next().orElseThrow();
      change(file, 0);
      assertThatThrownBy(() -> plan.hostWrites().writers().getFirst().write(slot))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("changed-meanwhile");
      Files.write(file, new byte[record]);
      assertThatThrownBy(() -> plan.hostWrites().writers().getFirst().write(slot))
          .hasMessageContaining(file.toString());
    }
  }

  /// Each rank reads only its own records.
  @Test
  void aDamagedRecordIsTheFaultOfTheRankThatHasIt() throws IOException {
    Path file = writeLong(0, 4);
    change(file, 3 * longBytes(file, 4) + 100);
    for (int rank = 0; rank < 2; rank++) {
      try (StreamedBatches batches =
          open(List.of(file), Streams.order(2, LastBatch.KEEP, rank, 2), OPTIONS)) {
        if (rank == 0) {
          assertThat(Streams.ids(Streams.run(batches, batches.start())))
              .containsExactly(List.of(0L, 1L));
        } else {
          assertThatThrownBy(() -> Streams.run(batches, batches.start()))
              .hasMessageContaining("data-crc: record 3:");
        }
      }
    }
  }

  @Test
  void aFailingReadLeavesNothing() {
    aFailingReadLeavesNothing(List.of(write(0, 9), write(1, 3)));
    aFailingReadLeavesNothing(List.of(writeLong(0, 9), writeLong(1, 3)));
  }

  private void aFailingReadLeavesNothing(List<Path> files) {
    for (int call = 1; call <= 4; call++) {
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE).at(Function.PREAD, call, new Fails(Errno.EIO));
      try (GantrySession faulty = Sessions.over(calls);
          StreamedBatches batches =
              StreamedBatches.open(
                  faulty,
                  files.stream().map(Location::of).toList(),
                  ID,
                  OrderOptions.of(2),
                  OPTIONS)) {
        assertThatThrownBy(() -> Streams.run(batches, batches.start()))
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("EIO");
      }
    }
  }
}
