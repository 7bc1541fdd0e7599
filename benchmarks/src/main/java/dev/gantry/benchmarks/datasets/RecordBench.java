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

/// TFRecord files against what a program on the JVM reads them with that has no Gantry: tensorflow-hadoop's reader, and
/// protobuf. Records with both checksums of each compared, and batches out of files that are read as streams.
record RecordBench(Samples samples) {
  private static final int CHUNK_BYTES = TfRecordOptions.defaults().chunkBytes();

  /// The best of 8 KiB, 64 KiB and 1 MiB for tensorflow-hadoop, all in all.
  private static final int BUFFER_BYTES = 64 << 10;

  /// Is given each record.
  @FunctionalInterface
  private interface RecordSink {
    void accept(byte[] record) throws IOException;
  }

  /// Is given each batch.
  @FunctionalInterface
  private interface BatchSink {
    void accept(ByteBuffer images, long[] labels, int samples);
  }

  /// Memory for the images and labels of a batch, filled over and over by protobuf. For one thread.
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

    /// Copies an example's values to where the batch has them.
    void add(byte[] record) throws InvalidProtocolBufferException {
      Features features = Example.parseFrom(record).getFeatures();
      features.getFeatureOrThrow("image").getBytesList().getValue(0).copyTo(images);
      labels[count++] = features.getFeatureOrThrow("label").getInt64List().getValue(0);
      if (count == labels.length) {
        flush();
      }
    }

    /// Hands over what there is.
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

  /// Measures records, on one thread and with a file on each of two, beside copies of the files by the JDK.
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

  /// Reads all records of a file by tensorflow-hadoop, and has both checksums of each compared.
  ///
  /// @return how many there were
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

  /// Whether all records are the same ones.
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

  /// Measures batches: ours in memory of a ring, and protobuf's values copied to a batch's memory.
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
