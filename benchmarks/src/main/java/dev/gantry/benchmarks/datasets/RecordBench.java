// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;

/// Records out of TFRecord files, both checksums of each compared: ours and tensorflow-hadoop's
/// reader, on one thread and with a file on each of two; beside copies of the files by the JDK.
record RecordBench(GantrySession session, RecordFiles records) {
  private static final int CHUNK_BYTES = TfRecordOptions.defaults().chunkBytes();

  void run(int turns) throws Exception {
    check();
    ThreadLocal<ByteBuffer> buffer =
        ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(CHUNK_BYTES));
    long bytes = records.bytes();
    Comparison all =
        new Comparison(
            "framing, " + records.kind(),
            records.count(),
            bytes,
            records.files(),
            List.of(
                CopyCeiling.contestant(records.files(), bytes, 1, CHUNK_BYTES),
                Contender.of(
                    "copy and CRC32C, 1 thread",
                    bytes,
                    () ->
                        CopyCeiling.each(
                            records.files(),
                            1,
                            file -> CopyCeiling.copyAndChecksum(file, buffer.get()))),
                gantry(1),
                hadoop(1),
                CopyCeiling.contestant(records.files(), bytes, 2, CHUNK_BYTES),
                gantry(2),
                hadoop(2)));
    var _ = all.print(turns);
  }

  private Contender gantry(int threads) {
    return Contender.of(
        "gantry, " + CopyCeiling.threads(threads),
        records.count(),
        () -> CopyCeiling.each(records.files(), threads, this::read));
  }

  private long read(Path file) {
    long count = 0;
    long bytes = 0;
    try (TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults())) {
      while (reader.next()) {
        bytes += reader.record().byteSize();
        count++;
      }
    }
    return bytes == 0 ? 0 : count;
  }

  private Contender hadoop(int threads) {
    return Contender.of(
        "tensorflow-hadoop, " + CopyCeiling.threads(threads),
        records.count(),
        () ->
            CopyCeiling.each(
                records.files(), threads, file -> TensorFlowRecords.read(file, _ -> {})));
  }

  /// Whether all records are the same ones.
  private void check() throws IOException {
    SampleDigest ours = new SampleDigest();
    SampleDigest theirs = new SampleDigest();
    for (Path file : records.files()) {
      try (TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults())) {
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
