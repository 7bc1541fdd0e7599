// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Features;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.tensorflow.hadoop.util.TFRecordReader;

/// What a program on the JVM reads TFRecord with that has no Gantry: tensorflow-hadoop's reader,
/// and protobuf.
final class TensorFlowRecords {
  /// The best of 8 KiB, 64 KiB and 1 MiB, all in all.
  private static final int BUFFER_BYTES = 64 << 10;

  private TensorFlowRecords() {}

  /// Is given each record.
  @FunctionalInterface
  interface RecordSink {
    void accept(byte[] record) throws IOException;
  }

  /// Reads all records of a file, and has both checksums of each compared.
  ///
  /// @return how many there were
  static long read(Path file, RecordSink sink) throws IOException {
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

  /// Memory for the images and labels of a batch, filled over and over. For one thread.
  static final class Batch {
    private final ByteBuffer images;
    private final long[] labels;
    private final BatchSink sink;
    private int samples;

    Batch(int imageBytes, int batchSize, BatchSink sink) {
      images = ByteBuffer.allocateDirect(Math.multiplyExact(imageBytes, batchSize));
      labels = new long[batchSize];
      this.sink = sink;
    }

    /// Copies an example's values to where the batch has them.
    void add(byte[] record) throws InvalidProtocolBufferException {
      Features features = Example.parseFrom(record).getFeatures();
      features.getFeatureOrThrow("image").getBytesList().getValue(0).copyTo(images);
      labels[samples++] = features.getFeatureOrThrow("label").getInt64List().getValue(0);
      if (samples == labels.length) {
        flush();
      }
    }

    /// Hands over what there is.
    void flush() {
      sink.accept(images.flip(), labels, samples);
      images.clear();
      samples = 0;
    }
  }

  /// Is given each batch.
  @FunctionalInterface
  interface BatchSink {
    void accept(ByteBuffer images, long[] labels, int samples);
  }
}
