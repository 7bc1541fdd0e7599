// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.core.Device;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Batches out of TFRecord files, read as streams: ours in memory of a ring, against
/// tensorflow-hadoop's reader and protobuf with the values copied to a batch's memory. And decoding
/// alone, of records in memory, on one thread.
record DecodeBench(Samples samples) {
  private static final long MAX_IN_MEMORY_BYTES = 128L << 20;
  private static final int MAX_IN_MEMORY = 200_000;
  private static final ValueLayout.OfLong LABEL = ValueLayout.JAVA_LONG_UNALIGNED;

  void run(int turns) throws Exception {
    Epochs epoch = new Epochs(samples.session(), Device.HOST, 2, TransferOptions.defaults(), 1);
    Epochs.Opener opener = () -> samples.batches(Samples.Kind.STREAMED, new Shuffle.None());
    epoch.check("gantry's batches", opener, samples);
    checkPeer();
    List<Path> files = samples.records();
    RecordBench.comparison("batches", samples)
        .add(HostCeilings.copy(files, 1, RecordBench.CHUNK_BYTES))
        .add(peer(files, 1))
        .add(HostCeilings.copy(files, 2, RecordBench.CHUNK_BYTES))
        .add("gantry, ring of 2 on the host", samples.count(), () -> epoch.run(opener))
        .add(peer(files, 2))
        .print(turns);
    inMemory(turns);
  }

  private Contender peer(List<Path> files, int threads) {
    return Contender.of(
        "tensorflow-hadoop and protobuf, " + Threads.count(threads),
        samples.count(),
        () -> Threads.each(files, threads, file -> peer(file, (_, _, _) -> {})));
  }

  private long peer(Path file, TensorFlowRecords.BatchSink sink) throws IOException {
    TensorFlowRecords.Batch batch =
        new TensorFlowRecords.Batch(samples.imageBytes(), samples.batchSize(), sink);
    long count = TensorFlowRecords.read(file, batch::add);
    batch.flush();
    return count;
  }

  private void checkPeer() throws IOException {
    SampleDigest theirs = new SampleDigest();
    for (Path file : samples.records()) {
      var _ =
          peer(
              file,
              (images, labels, count) -> {
                for (int i = 0; i < count; i++) {
                  theirs.add(
                      labels[i], images.slice(i * samples.imageBytes(), samples.imageBytes()));
                }
              });
    }
    theirs.require("the peer's batches", SampleDigest.of(samples));
  }

  /// The first records of the first file, for either in the memory that its reader gives.
  private void inMemory(int turns) throws Exception {
    try (Arena arena = Arena.ofConfined()) {
      List<RawRecord> ours = new ArrayList<>();
      List<byte[]> theirs = new ArrayList<>();
      long bytes = 0;
      try (TfRecordReader reader =
          TfRecordReader.open(
              samples.session(), samples.records().getFirst(), TfRecordOptions.defaults())) {
        while (bytes < MAX_IN_MEMORY_BYTES && ours.size() < MAX_IN_MEMORY && reader.next()) {
          MemorySegment data = arena.allocate(reader.record().byteSize()).copyFrom(reader.record());
          ours.add(new RawRecord(reader.file(), reader.number(), reader.offset(), data));
          theirs.add(data.toArray(ValueLayout.JAVA_BYTE));
          bytes += data.byteSize();
        }
      }
      ExampleParser parser = new ExampleParser(samples.features());
      MemorySegment slot = arena.allocate(parser.batchBytes(samples.batchSize()));
      ByteBuffer copies = slot.asByteBuffer();
      new Comparison("decoding in memory, records of " + bytes / ours.size() + " bytes", bytes)
          .samples(ours.size())
          .add("copy", ours.size(), () -> copy(theirs, copies))
          .add("gantry", ours.size(), () -> decode(parser, ours, slot))
          .add("protobuf", ours.size(), () -> parse(theirs))
          .print(turns);
    }
  }

  private long decode(ExampleParser parser, List<RawRecord> all, MemorySegment slot) {
    long done = 0;
    for (int i = 0; i < all.size(); i += samples.batchSize()) {
      List<RawRecord> some = all.subList(i, Math.min(all.size(), i + samples.batchSize()));
      FieldView labels = parser.parse(some, slot).get(1);
      // What a label says is there only if it was decoded.
      done += slot.get(LABEL, labels.offset()) == some.getFirst().number() ? some.size() : 0;
    }
    return done;
  }

  private long parse(List<byte[]> all) throws IOException {
    long[] done = {0};
    TensorFlowRecords.Batch batch =
        new TensorFlowRecords.Batch(
            samples.imageBytes(),
            samples.batchSize(),
            (_, labels, count) -> done[0] += labels[0] == done[0] ? count : 0);
    for (byte[] record : all) {
      batch.add(record);
    }
    batch.flush();
    return done[0];
  }

  private static long copy(List<byte[]> all, ByteBuffer target) {
    for (byte[] record : all) {
      if (target.remaining() < record.length) {
        target.clear();
      }
      target.put(record);
    }
    return all.size();
  }
}
