// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.streams.Streams.Batch;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.CorruptionPolicy;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class StreamedBatchesTest {
  private static final List<FeatureSpec> ID = List.of(FeatureSpec.int64s("id"));
  private static final TfRecordOptions OPTIONS =
      TfRecordOptions.defaults().withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES);

  @TempDir Path folder;
  private GantrySession session = GantrySession.open();

  @BeforeEach
  void openSession() {
    session = GantrySession.open();
  }

  @AfterEach
  void closeSession() {
    session.close();
  }

  private Path write(int file, int records) {
    return Streams.write(session, folder, file, records, Compression.NONE);
  }

  private StreamedBatches open(List<Path> files, OrderOptions order, TfRecordOptions options) {
    return StreamedBatches.open(
        session, files.stream().map(Location::of).toList(), ID, order, options);
  }

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
  void sizesAreFixedBeforeAnythingIsRead() {
    Path file = write(0, 10);
    List<FeatureSpec> features =
        List.of(
            FeatureSpec.int64s("id"),
            new FeatureSpec.VariableLength(
                "text", FeatureSpec.Kind.BYTES, DType.U8, 1000, 0, FeatureSpec.PadTo.LONGEST));
    try (StreamedBatches batches =
        StreamedBatches.open(
            session, List.of(Location.of(file)), features, OrderOptions.of(4), OPTIONS)) {
      assertThat(batches.hostBytes()).isEqualTo(256 + 4096 + 256);
      assertThat(batches.slotBytes()).isEqualTo(8192);
      assertThat(batches.batchesPerEpoch()).isEmpty();
    }
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

  private static DatasetState firstBatch(StreamedBatches batches) {
    try (BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      return source.next().orElseThrow().label().after();
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
          .hasMessageContaining("missing-feature: record 1: feature 'id'");
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
          .hasMessageContaining("missing-feature: record 1: feature 'id'");
    }
  }

  @Test
  void memoryOfRecordsIsUsedAgainAndGivenBack() {
    Path file = write(0, 64);
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(1), OPTIONS)) {
      assertThat(Streams.run(batches, batches.start())).hasSize(64);
      // The slabs belong to three batches in flight and to the batch that found the end.
      assertThat(LiveResources.snapshot().slabs()).isBetween(1L, 4L);
      assertThat(LiveResources.snapshot().openFiles()).isZero();
      try (BatchPlanSource<BatchView> source = batches.from(batches.start())) {
        assertThat(source.next()).isPresent();
        assertThat(source.next()).isPresent();
        assertThat(LiveResources.snapshot().openFiles()).isOne();
      }
      assertThat(LiveResources.snapshot().openFiles()).as("closed in mid-epoch").isZero();
    }
  }

  /// A ring that is closed early requests its last batches, but never fills them.
  @Test
  void whatWasNeverMadeHoldsNoMemoryOnceItsEpochsAreLeft() {
    Path file = write(0, 2);
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(1), OPTIONS);
        Arena arena = Arena.ofConfined()) {
      MemorySegment slot = arena.allocate(batches.slotBytes());
      for (int i = 0; i < 50; i++) {
        try (EpochChain epochs = new EpochChain(batches, batches.start(), 9)) {
          for (int batch = 0; batch < 5; batch++) {
            BatchPlan<BatchView> plan = epochs.next().orElseThrow();
            // The writers of the other batches never run.
            if (batch == 1) {
              plan.hostWrites().writers().getFirst().write(slot);
            }
          }
        }
      }
      // The slabs belong to at most five batches in flight and to the one that found the end of an
      // epoch.
      assertThat(LiveResources.snapshot().slabs()).isBetween(1L, 6L);
    }
  }

  @Test
  void aSourceTakesBackNothingThatIsAnothersByThen() {
    Path file = write(0, 2);
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(1), OPTIONS);
        Arena arena = Arena.ofConfined();
        BatchPlanSource<BatchView> second = batches.from(batches.start())) {
      MemorySegment slot = arena.allocate(batches.slotBytes());
      long slabs;
      try (BatchPlanSource<BatchView> first = batches.from(batches.start())) {
        first.next().orElseThrow().hostWrites().writers().forEach(maker -> maker.write(slot));
        assertThat(second.next()).isPresent();
        slabs = LiveResources.snapshot().slabs();
      }
      assertThat(second.next()).isPresent();
      // The new batch needs one more slab, and the first source's batch has given one back.
      assertThat(LiveResources.snapshot().slabs()).isEqualTo(slabs);
    }
  }

  @Test
  void recordsOfABatchHaveALimit() {
    Path file = write(0, 10);
    try (StreamedBatches batches =
            open(List.of(file), OrderOptions.of(5), OPTIONS.withMostBatchBytes(40));
        BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      assertThatThrownBy(source::next)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("more than the 40 of TfRecordOptions.withMostBatchBytes");
    }
  }

  @Test
  void shufflesWithTheDefaultBufferAreOverAllThatFits() {
    List<Path> files = List.of(write(0, 300), write(1, 300));
    OrderOptions order = new OrderOptions(30, LastBatch.KEEP, new Shuffle.Samples(7), 1, 1, 0, 1);
    try (StreamedBatches batches = open(files, order, TfRecordOptions.defaults())) {
      List<List<Long>> first = Streams.ids(Streams.run(batches, batches.start()));
      List<List<Long>> second = Streams.ids(Streams.run(batches, batches.start().atEpoch(1)));
      assertThat(first).hasSize(20).isNotEqualTo(second);
      // Each batch of 30 has records of both files, in about equal numbers.
      assertThat(first).allMatch(ids -> ids.stream().mapToLong(id -> id / 1000).sum() >= 5);
      assertThat(first).allMatch(ids -> ids.stream().mapToLong(id -> id / 1000).sum() <= 25);
      assertThat(first.stream().flatMap(List::stream).distinct()).hasSize(600);
    }
  }

  /// A buffer of 800 bytes holds records of 40 bytes, then of some 100 bytes, and later of 1,000
  /// bytes.
  @Test
  void aBufferThatIsFullOfBytesGoesOnWithFewerRecords() {
    Path file = folder.resolve("growing");
    try (TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
      for (int i = 0; i < 60; i++) {
        byte[] text = new byte[i < 20 ? 10 : i < 40 ? 70 : 970];
        writer.write(new ExampleBuilder().int64s("id", i).bytes("text", text).toBytes());
      }
      writer.commit();
    }
    OrderOptions order = new OrderOptions(4, LastBatch.KEEP, new Shuffle.Samples(7), 1, 1, 0, 1);
    TfRecordOptions options = OPTIONS.withShuffleBuffer(100, 800);
    try (StreamedBatches batches = open(List.of(file), order, options)) {
      List<Streams.Batch> all = Streams.run(batches, batches.start());
      assertThat(Streams.ids(all).stream().flatMap(List::stream).distinct()).hasSize(60);
      String last = all.get(13).after().cursor();
      assertThat(last).matches("record=\\d+;draws=56;filled=\\d+;pauses=\\d+\\+\\d+,.*");
      for (int i = 0; i < all.size(); i++) {
        assertThat(Streams.run(batches, all.get(i).after()))
            .isEqualTo(all.subList(i + 1, all.size()));
      }
    }
  }

  /// Each of two ranks gets three of the six remaining records, without another read.
  @Test
  void whatABufferHoldsAtTheEndIsSharedWithoutReadingAgain() throws IOException {
    Path file = write(0, 30);
    OrderOptions order = new OrderOptions(4, LastBatch.KEEP, new Shuffle.Samples(7), 1, 1, 1, 2);
    try (StreamedBatches batches = open(List.of(file), order, OPTIONS);
        BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      for (int i = 0; i < 3; i++) {
        assertThat(source.next().orElseThrow().label().samples()).isEqualTo(4);
      }
      Files.delete(file);
      assertThat(source.next().orElseThrow().label().samples()).isEqualTo(3);
      assertThat(source.next()).isEmpty();
    }
  }

  @Test
  void aStateOfAnotherBufferIsRefused() {
    List<Path> files = List.of(write(0, 30));
    OrderOptions order = new OrderOptions(4, LastBatch.KEEP, new Shuffle.Samples(7), 1, 1, 0, 1);
    try (StreamedBatches batches = open(files, order, OPTIONS.withShuffleBuffer(10, 1000));
        StreamedBatches larger = open(files, order, OPTIONS.withShuffleBuffer(11, 1000))) {
      DatasetState state = firstBatch(batches);
      assertThatThrownBy(() -> larger.from(state))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("buffer=10x1000 (now buffer=11x1000)");
      for (String wrong :
          List.of(
              state.cursor().replace("filled=10", "filled=11"),
              state.cursor().replace("filled=10", "filled=0"),
              state.cursor().replace("draws=4", "draws=400"),
              state.cursor().replace("pauses=", "pauses=7+3"),
              state.cursor().replace("pauses=", "pauses=0+30"),
              state.cursor().replace("record=0", "record=20"),
              "x" + state.cursor())) {
        DatasetState broken = new DatasetState(state.order(), 0, 1, wrong);
        assertThatThrownBy(
                () -> {
                  try (BatchPlanSource<BatchView> source = batches.from(broken)) {
                    while (source.next().isPresent()) {}
                  }
                })
            .as(wrong)
            .isInstanceOf(MisuseException.class);
      }
    }
  }

  @Test
  void blocksNeedAnIndex() {
    OrderOptions order = new OrderOptions(1, LastBatch.KEEP, new Shuffle.Blocks(1, 1), 1, 1, 0, 1);
    List<Path> files = List.of(write(0, 1));
    assertThatThrownBy(() -> open(files, order, OPTIONS))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("build an index");
  }

  @Test
  void statesOfOthersAreRefused() {
    List<Path> files = List.of(write(0, 9), write(1, 3));
    try (StreamedBatches batches = open(files, OrderOptions.of(2), OPTIONS);
        StreamedBatches larger = open(files, OrderOptions.of(3), OPTIONS);
        StreamedBatches fewer = open(files.subList(0, 1), OrderOptions.of(2), OPTIONS)) {
      DatasetState state = firstBatch(batches);
      assertThatThrownBy(() -> larger.from(state))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("state of another order of the samples: batch=");
      assertThatThrownBy(() -> fewer.from(state)).isInstanceOf(MisuseException.class);
      for (String cursor :
          List.of(
              "",
              "x",
              "next=3;place=0;left=1;skipped=0;open=-",
              "next=1;place=1;left=1;skipped=0;open=-",
              "next=1;place=0;left=2;skipped=0;open=-",
              "next=1;place=0;left=1;skipped=0;open=-,-",
              "next=1;place=0;left=1;skipped=0;open=1@0#0",
              "next=1;place=0;left=1;skipped=0;open=0@0")) {
        DatasetState forged = new DatasetState(state.order(), 0, 1, cursor);
        assertThatThrownBy(() -> batches.from(forged))
            .as(cursor)
            .isInstanceOf(MisuseException.class);
      }
      // The checksum shows that no record begins at this offset.
      DatasetState shifted =
          new DatasetState(state.order(), 0, 1, "next=1;place=0;left=1;skipped=0;open=0@5#1");
      assertThatThrownBy(() -> Streams.run(batches, shifted))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("offset 5: length-crc: record 1");
    }
  }

  /// Writes records that are so long that the stream leaves them in the file for the decoders.
  private Path writeLong(int file, int records) {
    return Streams.write(session, folder, file, records, Compression.NONE, 3000);
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
  void aFileStaysOpenUntilItsRecordsAreRead() throws IOException {
    Path file = writeLong(0, 4);
    try (StreamedBatches batches = open(List.of(file), OrderOptions.of(2), OPTIONS);
        Arena arena = Arena.ofConfined()) {
      MemorySegment slot = arena.allocate(batches.slotBytes());
      try (BatchPlanSource<BatchView> source = batches.from(batches.start())) {
        BatchPlan<BatchView> first = source.next().orElseThrow();
        BatchPlan<BatchView> second = source.next().orElseThrow();
        assertThat(source.next()).isEmpty();
        Files.delete(file);
        first.hostWrites().writers().forEach(writer -> writer.write(slot));
        assertThat(LiveResources.snapshot().openFiles()).isOne();
        second.hostWrites().writers().forEach(writer -> writer.write(slot));
        assertThat(LiveResources.snapshot().openFiles()).isZero();
      }
    }
  }

  @Test
  void aFileOfABatchThatIsNeverMadeIsClosedWithItsSource() {
    Path file = writeLong(0, 4);
    for (Shuffle shuffle : List.of(new Shuffle.None(), new Shuffle.Samples(1))) {
      OrderOptions order = new OrderOptions(2, LastBatch.KEEP, shuffle, 1, 1, 0, 1);
      try (StreamedBatches batches = open(List.of(file), order, OPTIONS);
          BatchPlanSource<BatchView> source = batches.from(batches.start())) {
        assertThat(source.next()).isPresent();
        assertThat(LiveResources.snapshot().openFiles()).isOne();
      }
      assertThat(LiveResources.snapshot().openFiles()).isZero();
    }
  }

  @Test
  void ofManyFilesInAShuffleBufferFewStayOpen() {
    List<Path> files = IntStream.range(0, 100).mapToObj(file -> writeLong(file, 1)).toList();
    OrderOptions order = new OrderOptions(10, LastBatch.KEEP, new Shuffle.Samples(7), 1, 1, 0, 1);
    try (StreamedBatches batches = open(files, order, OPTIONS)) {
      try (BatchPlanSource<BatchView> source = batches.from(batches.start())) {
        assertThat(source.next()).isPresent();
        assertThat(LiveResources.snapshot().openFiles()).isBetween(60L, 66L);
      }
      assertThat(Streams.ids(Streams.run(batches, batches.start())).stream().flatMap(List::stream))
          .hasSize(100)
          .doesNotHaveDuplicates();
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

  @Test
  void filesAreOpenedOnlyWhenTheirTurnComes() throws IOException {
    List<Path> files = List.of(write(0, 4), write(1, 4));
    try (StreamedBatches batches = open(files, OrderOptions.of(4), OPTIONS);
        BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      Files.delete(files.get(1));
      assertThat(source.next()).isPresent();
      assertThatThrownBy(source::next)
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOENT");
    }
  }
}
