// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.order.Orders;
import dev.gantry.formats.internal.order.ShuffleDraws;
import dev.gantry.formats.internal.streams.Streams.Batch;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.stream.LongStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

/// Streamed samples come in the same order as indexed samples.
class StreamedBatchesPropertiesTest {
  private static final List<FeatureSpec> FEATURES =
      List.of(
          FeatureSpec.int64s("id"),
          new FeatureSpec.VariableLength(
              "text", FeatureSpec.Kind.BYTES, DType.I8, 6, -1, FeatureSpec.PadTo.LONGEST));

  private static Path folder = Path.of("");

  @BeforeContainer
  static void makeFolder() {
    folder = MemoryFolder.create();
  }

  @AfterContainer
  static void deleteFolder() {
    MemoryFolder.delete(folder);
  }

  /// Returns numbers of records of shards; some shards are empty.
  @Provide
  Arbitrary<List<Long>> shards() {
    return Arbitraries.longs().between(0, 20).list().ofMaxSize(6).withoutEdgeCases();
  }

  /// Returns the padding of short records, which the stream reads at once, and of long records,
  /// which it leaves in the file.
  @Provide
  Arbitrary<Integer> paddings() {
    return Arbitraries.of(0, 3000);
  }

  @Provide
  Arbitrary<OrderOptions> orders() {
    return Orders.options(Orders.ofWholeShards());
  }

  private static List<List<Long>> expected(List<Long> shards, OrderOptions order, long epoch) {
    EpochOrder indexed = EpochOrder.of(shards, order, epoch);
    List<List<Long>> batches = new ArrayList<>();
    for (long batch = 0; batch < indexed.batches(); batch++) {
      batches.add(indexed.batch(batch).stream().flatMap(run -> ids(run).boxed()).toList());
    }
    return batches;
  }

  private static LongStream ids(SampleRun run) {
    return LongStream.range(0, run.count()).map(i -> run.file() * Streams.FILE + run.first() + i);
  }

  @Property(tries = 150)
  void theOrderIsThatOfTheIndexOnEveryRankAndFromEveryState(
      @ForAll("shards") List<Long> shards,
      @ForAll("orders") OrderOptions order,
      @ForAll @IntRange(max = 3) int epoch,
      @ForAll Compression compression,
      @ForAll("paddings") int padding) {
    try (GantrySession session = GantrySession.open()) {
      List<Path> files = new ArrayList<>();
      for (int i = 0; i < shards.size(); i++) {
        // A compressed file without records cannot be recognised before it is read.
        Compression each = shards.get(i) == 0 ? Compression.NONE : compression;
        files.add(Streams.write(session, folder, i, shards.get(i), each, padding));
      }
      for (int rank = 0; rank < order.world(); rank++) {
        check(session, files, shards, Orders.ranked(order, rank, order.world()), epoch);
      }
    }
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  /// Returns limits of buffers in records and bytes; some hold one record, some the whole epoch.
  @Provide
  Arbitrary<TfRecordOptions> buffers() {
    return Combinators.combine(
            Arbitraries.integers().between(1, 150), Arbitraries.longs().between(1, 3000))
        .as(
            TfRecordOptions.defaults().withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES)
                ::withShuffleBuffer)
        .withoutEdgeCases();
  }

  @Provide
  Arbitrary<OrderOptions> shuffledOrders() {
    return Orders.options(Arbitraries.longs().map(Shuffle.Samples::new));
  }

  @Property(tries = 100)
  void shuffledStreamsGiveWhatABufferDoesOnEveryRankAndFromEveryState(
      @ForAll("shards") List<Long> shards,
      @ForAll("shuffledOrders") OrderOptions order,
      @ForAll("buffers") TfRecordOptions ofShort,
      @ForAll @IntRange(max = 3) int epoch,
      @ForAll("paddings") int padding) {
    TfRecordOptions options =
        ofShort.withShuffleBuffer(
            ofShort.shuffleRecords(), ofShort.shuffleBytes() * (1 + padding / 50));
    try (GantrySession session = GantrySession.open()) {
      List<Path> files = new ArrayList<>();
      for (int i = 0; i < shards.size(); i++) {
        files.add(Streams.write(session, folder, i, shards.get(i), Compression.NONE, padding));
      }
      List<Long> mixed = mixed(shards, order, options, epoch, padding);
      for (int rank = 0; rank < order.world(); rank++) {
        OrderOptions ofRank = Orders.ranked(order, rank, order.world());
        check(session, files, dealt(mixed, ofRank), options, ofRank, epoch);
      }
    }
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  /// Computes the order of a shuffle buffer one draw at a time.
  private static List<Long> mixed(
      List<Long> shards, OrderOptions order, TfRecordOptions options, long epoch, int padding) {
    long seed = ((Shuffle.Samples) order.shuffle()).seed();
    OrderOptions whole =
        new OrderOptions(
            1,
            LastBatch.KEEP,
            new Shuffle.Shards(seed),
            order.interleave(),
            order.interleaveBlock(),
            0,
            1);
    Deque<Long> stream = new ArrayDeque<>();
    expected(shards, whole, epoch).forEach(stream::addAll);
    ShuffleDraws draws = new ShuffleDraws(seed, epoch);
    List<Long> buffer = new ArrayList<>();
    while (!stream.isEmpty()
        && buffer.size() < options.shuffleRecords()
        && bytes(buffer, padding) < options.shuffleBytes()) {
      buffer.add(stream.remove());
    }
    List<Long> mixed = new ArrayList<>();
    int unread = 0;
    while (!buffer.isEmpty()) {
      int slot = draws.slot(mixed.size(), buffer.size());
      mixed.add(buffer.set(slot, -1L));
      if (unread == 0 && bytes(buffer, padding) > options.shuffleBytes()) {
        unread = buffer.size() / 2;
      }
      if (unread == 0 && !stream.isEmpty()) {
        buffer.set(slot, stream.remove());
      } else {
        unread = Math.max(0, unread - 1);
        buffer.set(slot, buffer.getLast());
        buffer.removeLast();
      }
    }
    return mixed;
  }

  private static long bytes(List<Long> ids, int padding) {
    return ids.stream()
        .filter(id -> id >= 0)
        .mapToLong(id -> Streams.example(id, padding).toBytes().length)
        .sum();
  }

  /// Returns the samples of a rank's batches, dealt like indexed samples.
  private static List<List<Long>> dealt(List<Long> samples, OrderOptions order) {
    OrderOptions inOrder =
        new OrderOptions(
            order.batchSize(),
            order.lastBatch(),
            new Shuffle.None(),
            1,
            1,
            order.rank(),
            order.world());
    return expected(List.of((long) samples.size()), inOrder, 0).stream()
        .map(batch -> batch.stream().map(i -> samples.get(i.intValue())).toList())
        .toList();
  }

  private static void check(
      GantrySession session, List<Path> files, List<Long> shards, OrderOptions order, long epoch) {
    TfRecordOptions options =
        TfRecordOptions.defaults().withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES);
    check(session, files, expected(shards, order, epoch), options, order, epoch);
  }

  private static void check(
      GantrySession session,
      List<Path> files,
      List<List<Long>> expected,
      TfRecordOptions options,
      OrderOptions order,
      long epoch) {
    try (StreamedBatches batches =
        StreamedBatches.open(
            session, files.stream().map(Location::of).toList(), FEATURES, order, options)) {
      DatasetState start = new DatasetState(batches.start().order(), epoch, 0, "");
      List<Batch> streamed = Streams.run(batches, start);
      assertThat(Streams.ids(streamed)).isEqualTo(expected);
      for (int i = 0; i < streamed.size(); i++) {
        DatasetState after = DatasetState.parse(streamed.get(i).after().toText());
        assertThat(after.batch()).isEqualTo(i + 1);
        assertThat(Streams.run(batches, after)).isEqualTo(streamed.subList(i + 1, streamed.size()));
      }
    }
  }
}
