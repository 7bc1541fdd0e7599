// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Records out of TFRecord files, both checksums of each compared: ours and tensorflow-hadoop's
/// reader, on one thread and with a file on each of two; beside copies of the files by the JDK.
record RecordBench(Samples samples) {
  static final int CHUNK_BYTES = TfRecordOptions.defaults().chunkBytes();

  void run(int turns) throws Exception {
    check();
    List<Path> files = samples.records();
    Comparison all = comparison("framing", samples);
    for (int threads : new int[] {1, 2}) {
      all.add(HostCeilings.copy(files, threads, CHUNK_BYTES));
      if (threads == 1) {
        all.add(HostCeilings.copyAndChecksum(files, threads, CHUNK_BYTES));
      }
      String suffix = ", " + Threads.count(threads);
      all.add("gantry" + suffix, samples.count(), () -> Threads.each(files, threads, this::read))
          .add(
              "tensorflow-hadoop" + suffix,
              samples.count(),
              () -> Threads.each(files, threads, file -> TensorFlowRecords.read(file, _ -> {})));
    }
    all.print(turns);
  }

  static Comparison comparison(String title, Samples samples) throws IOException {
    List<Path> files = samples.records();
    long bytes = 0;
    for (Path file : files) {
      bytes += Files.size(file);
    }
    return new Comparison(title + ", records of " + bytes / samples.count() + " bytes", bytes)
        .samples(samples.count())
        .warm(files);
  }

  private long read(Path file) {
    long count = 0;
    long bytes = 0;
    try (TfRecordReader reader =
        TfRecordReader.open(samples.session(), file, TfRecordOptions.defaults())) {
      while (reader.next()) {
        bytes += reader.record().byteSize();
        count++;
      }
    }
    return bytes == 0 ? 0 : count;
  }

  /// Whether all records are the same ones.
  private void check() throws IOException {
    SampleDigest ours = new SampleDigest();
    SampleDigest theirs = new SampleDigest();
    for (Path file : samples.records()) {
      try (TfRecordReader reader =
          TfRecordReader.open(samples.session(), file, TfRecordOptions.defaults())) {
        while (reader.next()) {
          ours.add(reader.number(), reader.record().asByteBuffer());
        }
      }
      long[] number = {0};
      var _ =
          TensorFlowRecords.read(file, record -> theirs.add(number[0]++, ByteBuffer.wrap(record)));
    }
    ours.require("gantry's records are tensorflow-hadoop's", theirs);
  }
}
