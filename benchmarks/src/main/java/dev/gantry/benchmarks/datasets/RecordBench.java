// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.core.Device;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Features;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.tensorflow.hadoop.util.TFRecordReader;

/// Compares the reading of TFRecord files with a JVM program that has no Gantry and uses
/// tensorflow-hadoop's reader and protobuf. It measures records, whose two checksums are compared,
/// and batches from files that are read as streams.
record RecordBench(Samples samples) {
  private static final int CHUNK_BYTES = TfRecordOptions.defaults().chunkBytes();

  /// The buffer size that suits tensorflow-hadoop best over all measurements, among 8 KiB, 64 KiB
  /// and 1 MiB.
  private static final int BUFFER_BYTES = 64 << 10;

  @FunctionalInterface
  private interface RecordSink {
    void accept(byte[] record) throws IOException;
  }

  @FunctionalInterface
  private interface BatchSink {
    void accept(ByteBuffer images, long[] labels, int samples);
  }

  /// Memory for the images and labels of one batch, which protobuf fills again and again. For one
  /// thread.
  private static final class PeerBatch {
    private final ByteBuffer images;
    private final long[] labels;
    private final BatchSink sink;
    private int count;

    PeerBatch(Samples samples, BatchSink sink) {
      images =
          ByteBuffer.allocateDirect(Math.multiplyExact(samples.imageBytes(), samples.batchSize()));
      labels = new long[samples.batchSize()];
      this.sink = sink;
    }

    /// Copies an example's values into the batch.
    void add(byte[] record) throws InvalidProtocolBufferException {
      Features features = Example.parseFrom(record).getFeatures();
      features.getFeatureOrThrow("image").getBytesList().getValue(0).copyTo(images);
      labels[count++] = features.getFeatureOrThrow("label").getInt64List().getValue(0);
      if (count == labels.length) {
        flush();
      }
    }

    /// Passes the samples so far to the sink.
    void flush() {
      sink.accept(images.flip(), labels, count);
      images.clear();
      count = 0;
    }
  }

  private Comparison comparison(String title) throws IOException {
    List<Path> files = samples.records();
    long bytes = files.stream().mapToLong(file -> file.toFile().length()).sum();
    return new Comparison(title + ", records of " + bytes / samples.count() + " bytes", bytes)
        .samples(samples.count())
        .warm(files);
  }

  private Contender onFiles(String name, int threads, Threads.FileWork work) throws IOException {
    List<Path> files = samples.records();
    return Contender.of(
        name + ", " + Threads.count(threads),
        samples.count(),
        () -> Threads.each(files, threads, work));
  }

  /// Measures the reading of records on one thread and on two threads with a file each, beside
  /// copies of the files by the JDK.
  void records(int turns) throws Exception {
    checkRecords();
    List<Path> files = samples.records();
    Comparison all = comparison("framing");
    for (int threads : new int[] {1, 2}) {
      all.add(HostCeilings.copy(files, threads, CHUNK_BYTES));
      if (threads == 1) {
        all.add(HostCeilings.copyAndChecksum(files, threads, CHUNK_BYTES));
      }
      all.add(onFiles("gantry", threads, this::read))
          .add(onFiles("tensorflow-hadoop", threads, file -> readByPeer(file, _ -> {})));
    }
    all.print(turns);
  }

  private TfRecordReader open(Path file) {
    return TfRecordReader.open(samples.session(), file, TfRecordOptions.defaults());
  }

  private long read(Path file) {
    long count = 0;
    long bytes = 0;
    try (TfRecordReader reader = open(file)) {
      while (reader.next()) {
        bytes += reader.record().byteSize();
        count++;
      }
    }
    return bytes == 0 ? 0 : count;
  }

  /// Reads all records of a file with tensorflow-hadoop, which compares both checksums of each
  /// record.
  ///
  /// @return the number of records
  private static long readByPeer(Path file, RecordSink sink) throws IOException {
    long records = 0;
    try (InputStream in =
        new DataInputStream(
            new BufferedInputStream(new FileInputStream(file.toFile()), BUFFER_BYTES))) {
      TFRecordReader reader = new TFRecordReader(in, true);
      for (byte[] record = reader.read(); record != null; record = reader.read()) {
        sink.accept(record);
        records++;
      }
    }
    return records;
  }

  /// Checks that Gantry reads the same records as tensorflow-hadoop.
  private void checkRecords() throws IOException {
    SampleDigest ours = new SampleDigest();
    SampleDigest theirs = new SampleDigest();
    for (Path file : samples.records()) {
      try (TfRecordReader reader = open(file)) {
        while (reader.next()) {
          ours.add(reader.number(), reader.record().asByteBuffer());
        }
      }
      long[] number = {0};
      var _ = readByPeer(file, record -> theirs.add(number[0]++, ByteBuffer.wrap(record)));
    }
    ours.require("gantry's records are tensorflow-hadoop's", theirs);
  }

  /// Measures batches: Gantry's in the memory of a ring, and the peer's, whose values protobuf
  /// gives and the bench copies.
  void batches(int turns) throws Exception {
    Epochs epoch = new Epochs(samples.session(), Device.HOST, 2, TransferOptions.defaults(), 1);
    Epochs.Opener opener = () -> samples.batches(Samples.Kind.STREAMED, new Shuffle.None());
    epoch.check("gantry's batches", opener, samples);
    checkPeer();
    List<Path> files = samples.records();
    String peer = "tensorflow-hadoop and protobuf";
    comparison("batches")
        .add(HostCeilings.copy(files, 1, CHUNK_BYTES))
        .add(onFiles(peer, 1, file -> batchesByPeer(file, (_, _, _) -> {})))
        .add(HostCeilings.copy(files, 2, CHUNK_BYTES))
        .add("gantry, ring of 2 on the host", samples.count(), () -> epoch.run(opener))
        .add(onFiles(peer, 2, file -> batchesByPeer(file, (_, _, _) -> {})))
        .print(turns);
  }

  private long batchesByPeer(Path file, BatchSink sink) throws IOException {
    PeerBatch batch = new PeerBatch(samples, sink);
    long count = readByPeer(file, batch::add);
    batch.flush();
    return count;
  }

  private void checkPeer() throws IOException {
    SampleDigest theirs = new SampleDigest();
    int bytes = samples.imageBytes();
    for (Path file : samples.records()) {
      var _ =
          batchesByPeer(
              file,
              (images, labels, count) -> {
                for (int i = 0; i < count; i++) {
                  theirs.add(labels[i], images.slice(i * bytes, bytes));
                }
              });
    }
    theirs.require("the peer's batches", SampleDigest.of(samples));
  }
}
