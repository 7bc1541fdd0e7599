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
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Batches of records that are read as a stream: sizes, shuffle buffers, states, and the memory and files that are held.
class StreamedBatchesTest extends StreamedBatchesFixture {
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
          .hasMessageContaining("the state is of another order of the samples: batch=");
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
