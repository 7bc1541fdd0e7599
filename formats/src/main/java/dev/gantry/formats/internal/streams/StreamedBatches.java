// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.StraightValue;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.internal.order.MixingAdvice;
import dev.gantry.formats.internal.order.OrderIdentity;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.order.ShuffleDraws;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.tfrecord.CorruptionPolicy;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.SkippedFaults;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/// Batches of TFRecord files that are read from beginning to end: files of any compression, and files that
/// have no index. Every rank passes over all records, and reads, checks and decodes its own records on all
/// threads. Short records, and records of some files (see [SharedReader]), are read and checked by the
/// asking thread on every rank.
///
/// The order is the same as that of [EpochOrder], though the number of samples is not known
/// beforehand: `interleave` files are open at once, `interleaveBlock` records are read of each in
/// turn, and the next file takes the place of one that has ended. Empty files are left out. For
/// [Shuffle.Samples] the files come in random order, and their records go through a shuffle
/// buffer ([TfRecordOptions#withShuffleBuffer]), which returns its records in random order: if it
/// holds the whole epoch, any record may come next to any other.
///
/// A state holds the open files with their offsets. To continue from it takes no time in uncompressed
/// files; compressed files are decompressed again up to the offset. A shuffle buffer is filled again from
/// its oldest record on, with only the headers of long records. Records that [dev.gantry.formats.LastBatch]
/// takes from earlier in the epoch are read again, too. Faults that a [CorruptionPolicy] skips are counted
/// over all files of an epoch.
///
/// Memory: for each open file, a chunk of at most [TfRecordOptions#chunkBytes]; for each decoding thread, a
/// quarter of a MiB or its longest record; for records that the asking thread reads, one and a half times
/// those in the shuffle buffer, and those of each batch under way. Close the rings first, then this, which
/// frees the memory. Thread-safe.
public final class StreamedBatches implements Batches {
  /// The most parts of a batch that are decoded at once.
  private static final int MAX_PARTS = 32;

  private final GantrySession session;
  private final List<Location> files;
  private final ExampleParser parser;
  private final OrderOptions order;
  private final TfRecordOptions options;
  private final RecordBuffers buffers;
  private final StraightValue straight;
  private final String identity;
  private final int open;

  /// The seed of the shuffle buffer; empty if single records are not shuffled.
  private final OptionalLong shuffleSeed;

  private final ConcurrentMap<String, Long> skipped = new ConcurrentHashMap<>();
  private final AtomicInteger openFiles = new AtomicInteger();
  private final LongAdder records = new LongAdder();
  private final LongAdder bytes = new LongAdder();
  private final MixingAdvice mixing = new MixingAdvice();

  private StreamedBatches(
      GantrySession session,
      List<Location> files,
      String identity,
      ExampleParser parser,
      OrderOptions order,
      TfRecordOptions options) {
    this.session = session;
    this.files = files;
    this.identity = identity;
    this.parser = parser;
    this.order = order;
    this.options = options;
    shuffleSeed =
        order.shuffle() instanceof Shuffle.Samples(long seed)
            ? OptionalLong.of(seed)
            : OptionalLong.empty();
    open = Math.max(1, Math.min(order.interleave(), files.size()));
    buffers = new RecordBuffers(options.mostBatchBytes());
    straight = parser.straightValue();
  }

  /// @param session must stay open for as long as this is used
  /// @throws MisuseException if blocks of samples are to be shuffled, which needs an index
  /// @throws dev.gantry.core.TransferException if a file is missing
  public static StreamedBatches open(
      GantrySession session,
      List<Location> files,
      List<FeatureSpec> features,
      OrderOptions order,
      TfRecordOptions options) {
    if (order.shuffle() instanceof Shuffle.Blocks) {
      throw new MisuseException(
          "a stream of records cannot be shuffled by blocks: build an index, or shuffle samples,"
              + " which go through a buffer then, or whole files");
    }
    ExampleParser parser = new ExampleParser(features);
    long _ = parser.batchBytes(order.batchSize());
    List<Location> read = new ArrayList<>(files.size());
    StringBuilder text = new StringBuilder("tfrecord-stream");
    for (Location file : files) {
      long size = size(file, session);
      text.append('\n').append(file.fileName()).append(' ').append(size);
      if (size > 0) {
        read.add(file);
      }
    }
    MixingAdvice.ofFiles(order.shuffle(), read.size());
    // A rank's state holds its own reading positions, so it is of no use to other ranks.
    String buffer =
        order.shuffle() instanceof Shuffle.Samples
            ? options.shuffleRecords() + "x" + options.shuffleBytes()
            : "none";
    String identity =
        OrderIdentity.of(text.toString(), List.of(), order)
            + ",buffer="
            + buffer
            + ",rank="
            + order.rank();
    return new StreamedBatches(session, List.copyOf(read), identity, parser, order, options);
  }

  private static long size(Location file, GantrySession session) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return bytes.length();
    }
  }

  @Override
  public long slotBytes() {
    long blocks = Math.max(1, Math.ceilDiv(hostBytes(), PlanLimits.BLOCK_BYTES));
    return blocks * PlanLimits.BLOCK_BYTES;
  }

  @Override
  public long hostBytes() {
    return parser.batchBytes(order.batchSize());
  }

  /// Returns empty, since the number is not known before all files are read.
  @Override
  public OptionalLong batchesPerEpoch() {
    return OptionalLong.empty();
  }

  @Override
  public DatasetState start() {
    return new DatasetState(identity, 0, 0, "");
  }

  @Override
  public BatchPlanSource<BatchView> from(DatasetState state) {
    OrderIdentity.check(state.order(), identity);
    StreamCursor _ = cursor(state);
    if (state.batch() > EpochOrder.MAX_SAMPLES / order.batchSize() / order.world()) {
      throw new MisuseException(
          "the state has more batches than an epoch may have: " + state.toText());
    }
    return new StreamSource(this, state);
  }

  /// Returns the counts of the records that all sources have read so far, those of other ranks
  /// included.
  public TfRecordReader.Statistics statistics() {
    return new TfRecordReader.Statistics(records.sum(), bytes.sum(), skipped);
  }

  /// Frees the memory of records; no ring may use it any more.
  @Override
  public void close() {
    buffers.close();
  }

  private StreamCursor cursor(DatasetState state) {
    if (state.cursor().isEmpty()) {
      if (state.batch() != 0) {
        throw new MisuseException("the state has no cursor: " + state.toText());
      }
      return begin();
    }
    boolean shuffled = shuffleSeed.isPresent();
    StreamCursor cursor =
        StreamCursor.parse(state.cursor(), files.size(), open, order.interleaveBlock(), shuffled);
    if (cursor.shuffled().filter(each -> each.draws() > 0).isPresent()) {
      long[] _ = ShuffledStream.contents(draws(state.epoch()), options.shuffleRecords(), cursor);
    }
    return cursor;
  }

  /// The position at which each epoch begins.
  StreamCursor begin() {
    StreamCursor start = StreamCursor.start(open, order.interleaveBlock());
    return shuffleSeed.isPresent() ? start.with(StreamCursor.Shuffled.START) : start;
  }

  private ShuffleDraws draws(long epoch) {
    return new ShuffleDraws(shuffleSeed.orElseThrow(), epoch);
  }

  Records stream(DatasetState state) {
    StreamCursor from = cursor(state);
    return stream(
        state.epoch(), from, new SkippedFaults(options.corruption(), from.skipped(), skipped));
  }

  /// Reads records again: faults that were skipped before are skipped again, and not counted.
  Records again(long epoch, StreamCursor from) {
    CorruptionPolicy policy =
        switch (options.corruption()) {
          case CorruptionPolicy.Fail fail -> fail;
          case CorruptionPolicy.Skip _ -> new CorruptionPolicy.Skip(Long.MAX_VALUE);
        };
    return stream(epoch, from, new SkippedFaults(policy));
  }

  private Records stream(long epoch, StreamCursor from, SkippedFaults faults) {
    List<Location> ordered = new ArrayList<>(files.size());
    for (int file : EpochOrder.files(files.size(), order.shuffle(), epoch)) {
      ordered.add(files.get(file));
    }
    RecordStream stream =
        new RecordStream(
            session, ordered, options, order.interleaveBlock(), faults, openFiles, from);
    return from.shuffled().isPresent()
        ? new ShuffledStream(stream, draws(epoch), options, from, mixing)
        : stream;
  }

  /// The state after a batch.
  DatasetState after(DatasetState state, StreamCursor cursor) {
    return new DatasetState(identity, state.epoch(), state.batch() + 1, cursor.toText());
  }

  void read(long recordBytes) {
    records.increment();
    bytes.add(recordBytes);
  }

  ExampleParser parser() {
    return parser;
  }

  OrderOptions order() {
    return order;
  }

  StraightValue straight() {
    return straight;
  }

  RecordBuffers buffers() {
    return buffers;
  }

  int parts() {
    return Math.min(MAX_PARTS, Runtime.getRuntime().availableProcessors());
  }
}
