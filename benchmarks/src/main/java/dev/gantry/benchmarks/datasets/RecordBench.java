// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Records out of TFRecord files, both checksums of each compared: ours and tensorflow-hadoop's
/// reader, on one thread and with a file on each of two; beside copies of the files by the JDK.
record RecordBench(Samples samples) {
  static final int CHUNK_BYTES = TfRecordOptions.defaults().chunkBytes();

  void run(int turns) throws Exception {
    check();
    List<Path> files = samples.records();
    List<Contender> contenders = new ArrayList<>();
    for (int threads : new int[] {1, 2}) {
      contenders.add(HostCeilings.copy(files, threads, CHUNK_BYTES));
      if (threads == 1) {
        contenders.add(HostCeilings.copyAndChecksum(files, threads, CHUNK_BYTES));
      }
      String suffix = ", " + Threads.count(threads);
      contenders.add(
          Contender.of(
              "gantry" + suffix, samples.count(), () -> Threads.each(files, threads, this::read)));
      contenders.add(
          Contender.of(
              "tensorflow-hadoop" + suffix,
              samples.count(),
              () -> Threads.each(files, threads, file -> TensorFlowRecords.read(file, _ -> {}))));
    }
    print("framing", samples, contenders, turns);
  }

  static void print(String title, Samples samples, List<Contender> contenders, int turns)
      throws Exception {
    List<Path> files = samples.records();
    long bytes = 0;
    for (Path file : files) {
      bytes += Files.size(file);
    }
    var _ =
        new Comparison(
                title + ", records of " + bytes / samples.count() + " bytes",
                samples.count(),
                bytes,
                files,
                contenders)
            .print(turns);
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
