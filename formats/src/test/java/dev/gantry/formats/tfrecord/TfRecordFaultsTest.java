// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.ChangingFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// TFRecord files that are damaged or change, and disks that fail.
class TfRecordFaultsTest extends TfRecordReaderFixture {
  @Test
  void damagedDataIsSkippedUpToTheLimit() throws IOException {
    byte[] bytes = Framed.of(RECORDS);
    bytes[12] ^= 1;
    bytes[26 + 12 + 9] ^= 1;
    Path file = write(bytes);
    same(readAll(file, SMALL.withCorruption(new CorruptionPolicy.Skip(2))), RECORDS.subList(2, 5));
    MalformedFileException second =
        fault(file, SMALL.withCorruption(new CorruptionPolicy.Skip(1)), new ArrayList<>());
    assertThat(second.offset()).isEqualTo(26);
    assertThat(second).hasMessageContaining("data-crc: record 1:");
  }

  @Test
  void behindAFaultThatIsThrownTheFileEnds() throws IOException {
    byte[] bytes = Framed.of(RECORDS);
    bytes[12] ^= 1;
    Path file = write(bytes);
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader = TfRecordReader.open(session, file, SMALL)) {
      assertThatThrownBy(reader::next).hasMessageContaining("data-crc: record 0:");
      assertThat(reader.next()).isFalse();
    }
  }

  /// Without the length, the offset of the next record is unknown.
  @Test
  void behindADamagedLengthTheFileEnds() throws IOException {
    byte[] bytes = Framed.of(RECORDS);
    bytes[26 + 3] ^= 1;
    Path file = write(bytes);
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader =
            TfRecordReader.open(
                session, file, SMALL.withCorruption(new CorruptionPolicy.Skip(1)))) {
      assertThat(reader.next()).isTrue();
      assertThat(reader.record().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(RECORDS.getFirst());
      assertThat(reader.next()).isFalse();
      assertThat(reader.statistics().skipped()).isEqualTo(Map.of("length-crc", 1L));
    }
  }

  @ParameterizedTest
  @EnumSource
  void lengthsThatCannotBeTakeNoMemory(Compression compression) throws IOException {
    for (long length : new long[] {1L << 62, -1, Long.MIN_VALUE, Long.MAX_VALUE, 1 << 30}) {
      Path file = write(compressed(concatenated(Framed.header(length), new byte[99]), compression));
      try (GantrySession session = GantrySession.open();
          TfRecordReader reader = TfRecordReader.open(session, file, SMALL)) {
        MalformedFileException fault =
            catchThrowableOfType(MalformedFileException.class, reader::next);
        assertThat(fault.kind()).isEqualTo("truncated");
        assertThat(NoLeaks.held().hostBytes()).isLessThan(1 << 20);
      }
    }
  }

  /// The reader allocates memory for bytes that it has decompressed, and not for the length that a
  /// record claims.
  @Test
  void memoryGrowsWithTheBytesThatArriveOnly() throws IOException {
    byte[] zeros = new byte[1 << 20];
    byte[] longer = concatenated(Framed.header(500 << 20), zeros);
    // The random bytes make the file so long that the record's length is possible for its size.
    Path file =
        write(
            concatenated(
                compressed(longer, Compression.GZIP),
                compressed(TestFiles.bytes(1, 600_000), Compression.GZIP)));
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader = TfRecordReader.open(session, file, SMALL)) {
      MalformedFileException fault =
          catchThrowableOfType(MalformedFileException.class, reader::next);
      assertThat(fault.kind()).isEqualTo("truncated");
      assertThat(NoLeaks.held().hostBytes()).isLessThan(8 << 20);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aRecordOfMoreThanTheLimitIsNeverSkipped(Compression compression) throws IOException {
    Path file = write(compressed(Framed.of(RECORDS), compression));
    TfRecordOptions options =
        SMALL.withMostRecordBytes(4096).withCorruption(new CorruptionPolicy.Skip(9));
    List<byte[]> before = new ArrayList<>();
    assertThat(fault(file, options, before).kind()).isEqualTo("record-too-large");
    same(before, RECORDS.subList(0, 3));
  }

  @ParameterizedTest
  @EnumSource
  void interruptsAndShortReadsAreOvercome(Compression compression) throws IOException {
    Path file = write(compressed(Framed.of(RECORDS), compression));
    for (long seed = 0; seed < 8; seed++) {
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE)
              .seeded(Function.OPEN, seed, 2, new Fails(Errno.EINTR))
              .seeded(Function.PREAD, seed, 3, new Fails(Errno.EINTR))
              .seeded(Function.PREAD, seed, 2, new Shortens(77));
      same(readAll(calls, file, SMALL), RECORDS);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aFailingReadIsTheDisksFaultAtEveryCall(Compression compression) throws IOException {
    Path file = write(compressed(Framed.of(RECORDS), compression));
    FaultyFileCalls counting = new FaultyFileCalls(Libc.INSTANCE);
    same(readAll(counting, file, SMALL), RECORDS);
    int reads = counting.count(Function.PREAD);
    assertThat(reads).isPositive();
    for (int call = 1; call <= reads; call++) {
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE).at(Function.PREAD, call, new Fails(Errno.EIO));
      List<byte[]> before = new ArrayList<>();
      TransferException failure =
          catchThrowableOfType(
              TransferException.class,
              // A policy to skip corrupt records never skips a fault of the disk.
              () ->
                  readAll(calls, file, SMALL.withCorruption(new CorruptionPolicy.Skip(9)), before));
      assertThat(failure.failure()).isInstanceOf(Failure.Errno.class);
      assertThat(failure).hasMessageContaining("EIO");
      same(before, RECORDS.subList(0, before.size()));
    }
  }

  @Test
  void aFailingOpenLeavesNothing() throws IOException {
    Path file = write(Framed.of(RECORDS));
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).from(Function.OPEN, 1, new Fails(Errno.EMFILE));
    assertThatThrownBy(() -> readAll(calls, file, SMALL)).hasMessageContaining("EMFILE");
  }

  @ParameterizedTest
  @EnumSource
  void aFileThatChangesAtAnyCallIsOfOneVersionOrRefused(Compression compression)
      throws IOException {
    ByteArrayOutputStream before = new ByteArrayOutputStream();
    ByteArrayOutputStream after = new ByteArrayOutputStream();
    for (int i = 0; i < 5; i++) {
      before.writeBytes(TestFiles.bytes(i, 4000));
      after.writeBytes(TestFiles.bytes(100 + i, 4000));
    }
    ChangingFile.everywhere(
        folder.resolve("changing"),
        compressed(framed(before), compression),
        compressed(framed(after), compression),
        (session, file) -> {
          ByteArrayOutputStream got = new ByteArrayOutputStream();
          try (TfRecordReader reader = TfRecordReader.open(session, file, SMALL)) {
            while (reader.next()) {
              got.writeBytes(reader.record().toArray(ValueLayout.JAVA_BYTE));
            }
          }
          return got.toByteArray();
        });
  }
}
