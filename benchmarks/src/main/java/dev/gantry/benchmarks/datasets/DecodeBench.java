// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.streams.StreamedBatches;
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
record DecodeBench(GantrySession session, RecordFiles records) {
  private static final int CHUNK_BYTES = TfRecordOptions.defaults().chunkBytes();
  private static final long MOST_IN_MEMORY_BYTES = 128L << 20;
  private static final int MOST_IN_MEMORY = 200_000;
  private static final ValueLayout.OfLong LABEL = ValueLayout.JAVA_LONG_UNALIGNED;

  void run(int turns) throws Exception {
    check();
    long bytes = records.bytes();
    Comparison all =
        new Comparison(
            "batches, " + records.kind(),
            records.count(),
            bytes,
            records.files(),
            List.of(
                CopyCeiling.contestant(records.files(), bytes, 1, CHUNK_BYTES),
                peer(1),
                CopyCeiling.contestant(records.files(), bytes, 2, CHUNK_BYTES),
                Contender.of("gantry, ring of 2 on the host", records.count(), this::gantry),
                peer(2)));
    var _ = all.print(turns);
    inMemory(turns);
  }

  private Batches open() {
    return StreamedBatches.open(
        session,
        records.files().stream().map(Location::of).toList(),
        records.features(),
        OrderOptions.of(records.batchSize()),
        TfRecordOptions.defaults());
  }

  private long gantry() {
    long samples = 0;
    try (Batches batches = open();
        PrefetchRing<BatchView> ring = ring(batches)) {
      for (var next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          samples += batch.label().samples();
        }
      }
    }
    return samples;
  }

  private PrefetchRing<BatchView> ring(Batches batches) {
    return session.ring(
        new RingOptions(
            new Device.Host(),
            2,
            batches.slotBytes(),
            batches.hostBytes(),
            TransferOptions.defaults(),
            false),
        batches.from(batches.start()));
  }

  private Contender peer(int threads) {
    return Contender.of(
        "tensorflow-hadoop and protobuf, " + CopyCeiling.threads(threads),
        records.count(),
        () -> CopyCeiling.each(records.files(), threads, file -> peer(file, (_, _, _) -> {})));
  }

  private long peer(Path file, TensorFlowRecords.BatchSink sink) throws IOException {
    TensorFlowRecords.Batch batch =
        new TensorFlowRecords.Batch(records.imageBytes(), records.batchSize(), sink);
    long count = TensorFlowRecords.read(file, batch::add);
    batch.flush();
    return count;
  }

  private void check() throws IOException {
    SampleDigest expected = records.expected();
    SampleDigest ours = new SampleDigest();
    try (Batches batches = open();
        PrefetchRing<BatchView> ring = ring(batches)) {
      for (var next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          FieldView images = batch.label().fields().get(0);
          FieldView labels = batch.label().fields().get(1);
          int samples = batch.label().samples();
          add(
              ours,
              bytes(batch, images.offset(), (long) samples * records.imageBytes()),
              bytes(batch, labels.offset(), (long) samples * Long.BYTES),
              samples);
        }
      }
    }
    ours.require("gantry's batches, " + records.kind(), expected);
    SampleDigest theirs = new SampleDigest();
    for (Path file : records.files()) {
      var _ =
          peer(
              file,
              (images, labels, samples) ->
                  add(
                      theirs,
                      MemorySegment.ofBuffer(images),
                      MemorySegment.ofArray(labels),
                      samples));
    }
    theirs.require("the peer's batches, " + records.kind(), expected);
  }

  private static MemorySegment bytes(RingBatch<BatchView> batch, long offset, long length) {
    MemorySegment bytes = MemorySegment.ofArray(new byte[Math.toIntExact(length)]);
    batch.region(offset, length).copyTo(bytes);
    return bytes;
  }

  private void add(SampleDigest digest, MemorySegment images, MemorySegment labels, int samples) {
    for (int i = 0; i < samples; i++) {
      MemorySegment image = images.asSlice((long) i * records.imageBytes(), records.imageBytes());
      digest.add(labels.get(LABEL, (long) i * Long.BYTES), image.asByteBuffer());
    }
  }

  /// The first records of the first file, for either in the memory that its reader gives.
  private void inMemory(int turns) throws Exception {
    try (Arena arena = Arena.ofConfined()) {
      List<RawRecord> ours = new ArrayList<>();
      List<byte[]> theirs = new ArrayList<>();
      long bytes = 0;
      try (TfRecordReader reader =
          TfRecordReader.open(session, records.files().getFirst(), TfRecordOptions.defaults())) {
        while (bytes < MOST_IN_MEMORY_BYTES && ours.size() < MOST_IN_MEMORY && reader.next()) {
          MemorySegment data = arena.allocate(reader.record().byteSize()).copyFrom(reader.record());
          ours.add(new RawRecord(reader.file(), reader.number(), reader.offset(), data));
          theirs.add(data.toArray(ValueLayout.JAVA_BYTE));
          bytes += data.byteSize();
        }
      }
      MemorySegment slot = arena.allocate(parser().batchBytes(records.batchSize()));
      ByteBuffer copies = slot.asByteBuffer();
      Comparison all =
          new Comparison(
              "decoding in memory, " + records.kind(),
              ours.size(),
              bytes,
              List.of(),
              List.of(
                  Contender.of("copy", ours.size(), () -> copy(theirs, copies)),
                  Contender.of("gantry", ours.size(), () -> decode(ours, slot)),
                  Contender.of("protobuf", ours.size(), () -> parse(theirs))));
      var _ = all.print(turns);
    }
  }

  private ExampleParser parser() {
    return new ExampleParser(records.features());
  }

  private long decode(List<RawRecord> all, MemorySegment slot) {
    ExampleParser parser = parser();
    long samples = 0;
    for (int i = 0; i < all.size(); i += records.batchSize()) {
      List<RawRecord> some = all.subList(i, Math.min(all.size(), i + records.batchSize()));
      FieldView labels = parser.parse(some, slot).get(1);
      // What a label says is there only if it was decoded.
      samples += slot.get(LABEL, labels.offset()) == some.getFirst().number() ? some.size() : 0;
    }
    return samples;
  }

  private long parse(List<byte[]> all) throws IOException {
    long[] samples = {0};
    TensorFlowRecords.Batch batch =
        new TensorFlowRecords.Batch(
            records.imageBytes(),
            records.batchSize(),
            (_, labels, count) -> samples[0] += labels[0] == samples[0] ? count : 0);
    for (byte[] record : all) {
      batch.add(record);
    }
    batch.flush();
    return samples[0];
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
