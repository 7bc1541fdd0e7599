package dev.gantry.formats.tfrecord;

import dev.gantry.core.Gantry;
import dev.gantry.core.MisuseException;
import dev.gantry.core.plan.PlanLimits;
import dev.gantry.core.ring.FillingSource;
import dev.gantry.formats.dataset.BatchView;
import dev.gantry.formats.dataset.Batches;
import dev.gantry.formats.dataset.DatasetState;
import dev.gantry.formats.dataset.EpochOrder;
import dev.gantry.formats.dataset.OrderIdentity;
import dev.gantry.formats.dataset.OrderOptions;
import dev.gantry.formats.dataset.Shuffle;
import dev.gantry.formats.internal.FileBytes;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/// Batches of TFRecord files that are read from beginning to end: files of any compression, and
/// files that have no index. Every rank reads and checks all records, and decodes its own.
///
/// The order is that of [EpochOrder] for as many samples, though nobody knows beforehand how many
/// there are: `interleave` files are open at once, `interleaveBlock` records are read of each in
/// turn, and the next file takes the place of one that has ended. Files of no bytes are left out;
/// shuffling is by whole files at most.
///
/// A state holds the open files with their offsets: going on from it takes no time for files that
/// are not compressed; what is compressed is decompressed again up to there. The same goes for what
/// [dev.gantry.formats.dataset.LastBatch] takes from earlier in the epoch. Faults that a
/// [CorruptionPolicy] passes over count over all files of an epoch.
///
/// Memory: a chunk of [TfRecordOptions#chunkBytes] for each open file, and the records of each
/// batch that a ring is filling. It is given back by [#close], after the rings that use it are
/// closed. Thread-safe.
public final class StreamedBatches implements Batches {
  /// The most bytes that the records of one batch may have, unless said otherwise.
  public static final long USUAL_RECORD_BYTES = 1L << 30;

  /// Parts of a batch that are decoded at once.
  private static final int MOST_PARTS = 32;

  private final Gantry session;
  private final List<Path> files;
  private final ExampleParser parser;
  private final OrderOptions order;
  private final TfRecordOptions options;
  private final RecordBuffers buffers;
  private final String identity;
  private final int open;
  private final Map<String, LongAdder> skipped = new ConcurrentHashMap<>();
  private final LongAdder records = new LongAdder();
  private final LongAdder bytes = new LongAdder();

  private StreamedBatches(
      Gantry session,
      List<Path> files,
      String identity,
      ExampleParser parser,
      OrderOptions order,
      TfRecordOptions options,
      long mostRecordBytes) {
    this.session = session;
    this.files = files;
    this.identity = identity;
    this.parser = parser;
    this.order = order;
    this.options = options;
    open = Math.max(1, Math.min(order.interleave(), files.size()));
    buffers = new RecordBuffers(mostRecordBytes);
  }

  /// @param session stays open for as long as this is used
  /// @throws MisuseException if blocks of samples are to be shuffled: only an index tells where
  ///     they are
  /// @throws dev.gantry.core.TransferException if a file is not there
  public static StreamedBatches open(
      Gantry session,
      List<Path> files,
      List<FeatureSpec> features,
      OrderOptions order,
      TfRecordOptions options) {
    return open(session, files, features, order, options, USUAL_RECORD_BYTES);
  }

  /// @param mostRecordBytes that the records of one batch may have together
  public static StreamedBatches open(
      Gantry session,
      List<Path> files,
      List<FeatureSpec> features,
      OrderOptions order,
      TfRecordOptions options,
      long mostRecordBytes) {
    if (order.shuffle() instanceof Shuffle.Blocks || order.shuffle() instanceof Shuffle.Samples) {
      throw new MisuseException(
          "a stream of records cannot be shuffled by blocks: build an index, or shuffle shards");
    }
    if (mostRecordBytes < 1) {
      throw new MisuseException("no room for records: " + mostRecordBytes);
    }
    ExampleParser parser = new ExampleParser(features);
    long _ = parser.batchBytes(order.batchSize());
    List<Path> read = new ArrayList<>(files.size());
    StringBuilder text = new StringBuilder("tfrecord-stream");
    for (Path file : files) {
      long size = size(file);
      text.append('\n').append(file.getFileName()).append(' ').append(size);
      if (size > 0) {
        read.add(file);
      }
    }
    // A rank's state says where it reads, and is of no use to the others.
    String identity = OrderIdentity.of(text.toString(), List.of(), order) + ",rank=" + order.rank();
    return new StreamedBatches(
        session, List.copyOf(read), identity, parser, order, options, mostRecordBytes);
  }

  private static long size(Path file) {
    try (FileBytes bytes = FileBytes.open(file)) {
      return bytes.length();
    }
  }

  @Override
  public long slotBytes() {
    long blocks = Math.max(1, Math.ceilDiv(madeBytes(), PlanLimits.BLOCK_BYTES));
    return blocks * PlanLimits.BLOCK_BYTES;
  }

  @Override
  public long madeBytes() {
    return parser.batchBytes(order.batchSize());
  }

  /// Nobody knows before all is read.
  @Override
  public OptionalLong batchesPerEpoch() {
    return OptionalLong.empty();
  }

  @Override
  public DatasetState start() {
    return new DatasetState(identity, 0, 0, "");
  }

  @Override
  public FillingSource<BatchView> from(DatasetState state) {
    OrderIdentity.check(state.order(), identity);
    StreamCursor _ = cursor(state);
    if (state.batch() > EpochOrder.MOST_SAMPLES / order.batchSize() / order.world()) {
      throw new MisuseException("no epoch has so many batches: " + state.toText());
    }
    return new StreamSource(this, state);
  }

  /// What was read so far, over all sources. Of records those of all ranks count.
  public TfRecordStatistics statistics() {
    Map<String, Long> faults = new ConcurrentHashMap<>();
    skipped.forEach((kind, count) -> faults.put(kind, count.sum()));
    return new TfRecordStatistics(records.sum(), bytes.sum(), faults);
  }

  /// Frees the memory of records; no ring may use it any more.
  @Override
  public void close() {
    buffers.close();
  }

  private StreamCursor cursor(DatasetState state) {
    if (state.cursor().isEmpty()) {
      if (state.batch() != 0) {
        throw new MisuseException("the state lacks its cursor: " + state.toText());
      }
      return begin();
    }
    return StreamCursor.parse(state.cursor(), files.size(), open, order.interleaveBlock());
  }

  /// Where each epoch begins.
  StreamCursor begin() {
    return StreamCursor.start(open, order.interleaveBlock());
  }

  RecordStream stream(DatasetState state) {
    StreamCursor from = cursor(state);
    SkippedFaults faults =
        new SkippedFaults(
            options.corruption(),
            from.skipped(),
            kind -> skipped.computeIfAbsent(kind, _ -> new LongAdder()).increment());
    return stream(state.epoch(), from, faults);
  }

  /// For records that were read before: what was passed over then is again, and not counted.
  RecordStream again(long epoch, StreamCursor from) {
    CorruptionPolicy policy =
        switch (options.corruption()) {
          case CorruptionPolicy.Fail fail -> fail;
          case CorruptionPolicy.Skip(_, long searchBytes) ->
              new CorruptionPolicy.Skip(Long.MAX_VALUE, searchBytes);
        };
    return stream(epoch, from, new SkippedFaults(policy));
  }

  private RecordStream stream(long epoch, StreamCursor from, SkippedFaults faults) {
    List<Path> ordered = new ArrayList<>(files.size());
    for (int file : EpochOrder.shards(files.size(), order.shuffle(), epoch)) {
      ordered.add(files.get(file));
    }
    return new RecordStream(session, ordered, options, order.interleaveBlock(), faults, from);
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

  RecordBuffers buffers() {
    return buffers;
  }

  int parts() {
    return Math.min(MOST_PARTS, Runtime.getRuntime().availableProcessors());
  }
}
