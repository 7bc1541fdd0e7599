// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// TFRecord files with a few records of different lengths, and readers of them.
@ExtendWith(NoLeaks.class)
abstract class TfRecordReaderFixture {
  static final TfRecordOptions SMALL =
      TfRecordOptions.defaults().withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES);

  static final List<byte[]> RECORDS =
      List.of(
          TestFiles.bytes(1, 10),
          TestFiles.bytes(2, 4096),
          new byte[0],
          TestFiles.bytes(3, 20_000),
          TestFiles.bytes(4, 300));

  @TempDir Path folder;

  Path write(byte[] bytes) throws IOException {
    return Files.write(folder.resolve("records"), bytes);
  }

  static byte[] compressed(byte[] bytes, Compression compression) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    OutputStream compressor =
        switch (compression) {
          case NONE -> out;
          case GZIP -> new GZIPOutputStream(out);
          case ZLIB -> new DeflaterOutputStream(out);
        };
    try (compressor) {
      compressor.write(bytes);
    }
    return out.toByteArray();
  }

  static byte[] concatenated(byte[]... parts) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      out.writeBytes(part);
    }
    return out.toByteArray();
  }

  static List<byte[]> readAll(FileCalls calls, Path file, TfRecordOptions options) {
    List<byte[]> records = new ArrayList<>();
    readAll(calls, file, options, records);
    return records;
  }

  static void readAll(FileCalls calls, Path file, TfRecordOptions options, List<byte[]> records) {
    try (GantrySession session = Sessions.over(calls);
        TfRecordReader reader = TfRecordReader.open(session, file, options)) {
      while (reader.next()) {
        records.add(reader.record().toArray(ValueLayout.JAVA_BYTE));
      }
      assertThat(reader.next()).as("still at its end").isFalse();
    }
  }

  static List<byte[]> readAll(Path file, TfRecordOptions options) {
    return readAll(Libc.INSTANCE, file, options);
  }

  /// Reads the records before the fault into `before`, and returns the fault.
  static MalformedFileException fault(Path file, TfRecordOptions options, List<byte[]> before) {
    return catchThrowableOfType(
        MalformedFileException.class, () -> readAll(Libc.INSTANCE, file, options, before));
  }

  static void same(List<byte[]> actual, List<byte[]> expected) {
    assertThat(Framed.words(actual)).isEqualTo(Framed.words(expected));
  }

  static byte[] framed(ByteArrayOutputStream records) {
    return Framed.of(List.of(Arrays.copyOf(records.toByteArray(), 12_000), records.toByteArray()));
  }
}
