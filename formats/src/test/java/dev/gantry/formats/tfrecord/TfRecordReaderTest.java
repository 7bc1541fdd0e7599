// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.source.InflatedSource;
import dev.gantry.testing.ChangingFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class TfRecordReaderTest {
  private static final TfRecordOptions SMALL =
      TfRecordOptions.defaults().withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES);

  private static final List<byte[]> RECORDS =
      List.of(
          TestFiles.bytes(1, 10),
          TestFiles.bytes(2, 4096),
          new byte[0],
          TestFiles.bytes(3, 20_000),
          TestFiles.bytes(4, 300));

  @TempDir Path folder;

  private Path write(byte[] bytes) throws IOException {
    return Files.write(folder.resolve("records"), bytes);
  }

  private static byte[] compressed(byte[] bytes, Compression compression) throws IOException {
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

  private static byte[] concatenated(byte[]... parts) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      out.writeBytes(part);
    }
    return out.toByteArray();
  }

  private static List<byte[]> readAll(FileCalls calls, Path file, TfRecordOptions options) {
    List<byte[]> records = new ArrayList<>();
    readAll(calls, file, options, records);
    return records;
  }

  private static void readAll(
      FileCalls calls, Path file, TfRecordOptions options, List<byte[]> records) {
    try (GantrySession session = Sessions.over(calls);
        TfRecordReader reader = TfRecordReader.open(session, file, options)) {
      while (reader.next()) {
        records.add(reader.record().toArray(ValueLayout.JAVA_BYTE));
      }
      assertThat(reader.next()).as("still at its end").isFalse();
    }
  }

  private static List<byte[]> readAll(Path file, TfRecordOptions options) {
    return readAll(Libc.INSTANCE, file, options);
  }

  /// Reads the records before the fault into `before`, and returns the fault.
  private static MalformedFileException fault(
      Path file, TfRecordOptions options, List<byte[]> before) {
    return catchThrowableOfType(
        MalformedFileException.class, () -> readAll(Libc.INSTANCE, file, options, before));
  }

  private static void same(List<byte[]> actual, List<byte[]> expected) {
    assertThat(Framed.words(actual)).isEqualTo(Framed.words(expected));
  }

  @ParameterizedTest
  @EnumSource
  void recordsOfAnyLengthAreReadInSmallChunks(Compression compression) throws IOException {
    Path file = write(compressed(Framed.of(RECORDS), compression));
    same(readAll(file, SMALL), RECORDS);
    same(readAll(file, TfRecordOptions.defaults()), RECORDS);
  }

  @ParameterizedTest
  @EnumSource
  void readingGoesOnFromAnyPosition(Compression compression) throws IOException {
    Path file = write(compressed(Framed.of(RECORDS), compression));
    try (GantrySession session = GantrySession.open()) {
      TfRecordReader.Position position = TfRecordReader.Position.START;
      for (int i = 0; i <= RECORDS.size(); i++) {
        try (TfRecordReader reader = TfRecordReader.open(session, file, SMALL, position)) {
          assertThat(reader.position()).isEqualTo(position);
          assertThat(reader.next()).isEqualTo(i < RECORDS.size());
          if (i < RECORDS.size()) {
            assertThat(reader.record().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(RECORDS.get(i));
            assertThat(reader.number()).isEqualTo(i);
            assertThat(reader.offset()).isEqualTo(position.offset());
          }
          position = reader.position();
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 300, Integer.MAX_VALUE})
  void longRecordsMayBeLeftForLater(int mostBytes) throws IOException {
    Path file = write(Framed.of(RECORDS));
    List<byte[]> records = new ArrayList<>();
    try (GantrySession session = GantrySession.open();
        Arena arena = Arena.ofConfined();
        TfRecordReader reader = TfRecordReader.open(session, file, SMALL)) {
      while (reader.next(mostBytes)) {
        int length = reader.length();
        assertThat(length).isEqualTo(RECORDS.get((int) reader.number()).length);
        assertThat(reader.hasData()).isEqualTo(length <= mostBytes);
        if (!reader.hasData()) {
          assertThatThrownBy(reader::record).isInstanceOf(MisuseException.class);
        }
        MemorySegment framed = arena.allocate(length + TfRecordReader.FRAMING_BYTES);
        reader.readRecords(new TfRecordReader.Position(reader.offset(), reader.number()), framed);
        records.add(
            framed.asSlice(TfRecordReader.HEADER_BYTES, length).toArray(ValueLayout.JAVA_BYTE));
        MemorySegment pieces = arena.allocate(framed.byteSize());
        long cut = TfRecordReader.HEADER_BYTES + length / 3L;
        reader.readRecord(
            new TfRecordReader.Position(reader.offset(), reader.number()),
            List.of(pieces.asSlice(0, cut), pieces.asSlice(cut)));
        assertThat(pieces.mismatch(framed)).isEqualTo(-1);
      }
      assertThatThrownBy(reader::length).isInstanceOf(MisuseException.class);
      // All records can be read at once.
      MemorySegment all = arena.allocate(Files.size(file));
      reader.readRecords(TfRecordReader.Position.START, all);
      assertThat(all.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(Framed.of(RECORDS));
    }
    same(records, RECORDS);
  }

  @Test
  void aRecordInPiecesIsChecked() throws IOException {
    byte[] framed = Framed.of(List.of(new byte[50], new byte[50]));
    framed[66 + 40] ^= 1;
    Path file = write(framed);
    try (GantrySession session = GantrySession.open();
        Arena arena = Arena.ofConfined();
        TfRecordReader reader = TfRecordReader.open(session, file, SMALL)) {
      List<MemorySegment> pieces =
          List.of(arena.allocate(20), arena.allocate(10), arena.allocate(36));
      reader.readRecord(TfRecordReader.Position.START, pieces);
      assertThatThrownBy(() -> reader.readRecord(new TfRecordReader.Position(66, 1), pieces))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("offset 66: data-crc: record 1: the checksum of its 50 bytes");
      assertThatThrownBy(() -> reader.readRecord(new TfRecordReader.Position(1, 0), pieces))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("offset 1: length-crc: record 0");
      List<MemorySegment> longer = List.of(arena.allocate(67));
      assertThatThrownBy(() -> reader.readRecord(TfRecordReader.Position.START, longer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("length-crc");
      List<MemorySegment> shortFirst = List.of(arena.allocate(11), arena.allocate(55));
      assertThatThrownBy(() -> reader.readRecord(TfRecordReader.Position.START, shortFirst))
          .isInstanceOf(MisuseException.class)
          .hasMessage("a record's first piece needs 12 bytes, its last 4");
    }
  }

  @Test
  void ofACompressedFileNothingIsLeftForLater() throws IOException {
    Path file = write(compressed(Framed.of(RECORDS), Compression.GZIP));
    try (GantrySession session = GantrySession.open();
        Arena arena = Arena.ofConfined();
        TfRecordReader reader = TfRecordReader.open(session, file, SMALL)) {
      assertThat(reader.next(0)).isTrue();
      assertThat(reader.hasData()).isTrue();
      MemorySegment target = arena.allocate(100);
      assertThatThrownBy(() -> reader.readRecords(TfRecordReader.Position.START, target))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("is compressed");
    }
  }

  @ParameterizedTest
  @EnumSource
  void aPositionBehindTheEndIsRefused(Compression compression) throws IOException {
    Path file = write(compressed(Framed.of(RECORDS), compression));
    TfRecordReader.Position behind = new TfRecordReader.Position(1_000_000, 7);
    try (GantrySession session = GantrySession.open()) {
      assertThatThrownBy(() -> TfRecordReader.open(session, file, SMALL, behind))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("offset 1000000: truncated: record 7:");
    }
  }

  @Test
  void severalGzipMembersAreOneStream() throws IOException {
    byte[] bytes = Framed.of(RECORDS);
    Path file =
        write(
            concatenated(
                compressed(Arrays.copyOf(bytes, 777), Compression.GZIP),
                compressed(new byte[0], Compression.GZIP),
                compressed(Arrays.copyOfRange(bytes, 777, bytes.length), Compression.GZIP)));
    same(readAll(file, SMALL), RECORDS);
  }

  /// Returns a gzip member whose header has an extra field of the largest size, a name and a
  /// comment.
  private static byte[] named(byte[] bytes, int name, int comment) throws IOException {
    byte[] member = compressed(bytes, Compression.GZIP);
    member[3] = 0b1_1100;
    byte[] extra = new byte[2 + 65_535];
    // The only subfield, 'Ap', fills the extra field.
    extra[0] = (byte) 0xff;
    extra[1] = (byte) 0xff;
    extra[2] = 'A';
    extra[3] = 'p';
    extra[4] = (byte) 0xfb;
    extra[5] = (byte) 0xff;
    byte[] names = new byte[name + comment + 2];
    Arrays.fill(names, (byte) 'x');
    names[name] = 0;
    names[name + comment + 1] = 0;
    return concatenated(
        Arrays.copyOf(member, 10), extra, names, Arrays.copyOfRange(member, 10, member.length));
  }

  @Test
  void namesOfGzipMembersAreReadUpToALimitOfEach() throws IOException {
    byte[] bytes = Framed.of(RECORDS);
    int half = InflatedSource.MAX_HEADER_BYTES / 2;
    byte[] first = named(Arrays.copyOf(bytes, 777), half, half - 100);
    byte[] none = named(new byte[0], half, half - 100);
    byte[] second = Arrays.copyOfRange(bytes, 777, bytes.length);
    Path file = write(concatenated(first, none, named(second, half, half - 100)));
    same(readAll(file, SMALL), RECORDS);

    for (int[] names : new int[][] {{2 * half, 0}, {0, 2 * half}, {half, half}}) {
      MalformedFileException atOnce =
          fault(write(named(bytes, names[0], names[1])), SMALL, new ArrayList<>());
      assertThat(atOnce).hasMessageContaining("offset 0: invalid-compression: record 0:");
      assertThat(atOnce).hasMessageContaining("more than 1048576 bytes");
      Path later = write(concatenated(first, none, named(second, names[0], names[1])));
      assertThat(fault(later, SMALL, new ArrayList<>()))
          .hasMessageContaining("invalid-compression: record 1:")
          .hasMessageContaining("more than 1048576 bytes");
    }
  }

  /// The name does not end before the end of the file.
  @Test
  void aGzipNameWithoutEndIsNotReadToTheHeap() throws IOException {
    byte[] header = Arrays.copyOf(compressed(new byte[0], Compression.GZIP), 10);
    header[3] = 0b1000;
    byte[] name = new byte[2 << 20];
    Arrays.fill(name, (byte) 'x');
    assertThat(fault(write(concatenated(header, name)), SMALL, new ArrayList<>()))
        .hasMessageContaining("offset 0: invalid-compression: record 0:")
        .hasMessageContaining("more than 1048576 bytes");
  }

  @ParameterizedTest
  @EnumSource(names = {"GZIP", "ZLIB"})
  void whatFollowsACompressedStreamIsAFault(Compression compression) throws IOException {
    Path file =
        write(concatenated(compressed(Framed.of(RECORDS), compression), new byte[] {1, 2, 3}));
    List<byte[]> before = new ArrayList<>();
    MalformedFileException fault = fault(file, SMALL, before);
    same(before, RECORDS);
    assertThat(fault.kind()).isEqualTo("invalid-compression");
    assertThat(fault.offset()).isEqualTo(Framed.of(RECORDS).length);
    assertThat(fault).hasMessageContaining("record 5:");
  }

  @ParameterizedTest
  @EnumSource(names = {"GZIP", "ZLIB"})
  void aCompressedFileThatIsCutAnywhereIsAFault(Compression compression) throws IOException {
    List<byte[]> records = List.of(TestFiles.bytes(1, 30), new byte[500], TestFiles.bytes(2, 40));
    byte[] whole = compressed(Framed.of(records), compression);
    for (int length = 1; length < whole.length; length++) {
      Path file = write(Arrays.copyOf(whole, length));
      List<byte[]> before = new ArrayList<>();
      MalformedFileException fault = fault(file, SMALL.withCompression(compression), before);
      assertThat(fault).as("%s bytes", length).isNotNull();
      same(before, records.subList(0, before.size()));
      // A truncated gzip header is not recognised as a gzip header.
      assertThat(fault.kind()).isIn("truncated", "invalid-compression");
      assertThat(fault.offset()).isEqualTo(Framed.of(before).length);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"GZIP", "ZLIB"})
  void aChangedByteOfACompressedFileChangesNoRecord(Compression compression) throws IOException {
    List<byte[]> records = List.of(TestFiles.bytes(1, 30), new byte[500], TestFiles.bytes(2, 40));
    byte[] whole = compressed(Framed.of(records), compression);
    for (int i = 0; i < whole.length; i++) {
      byte[] changed = whole.clone();
      changed[i] ^= 0x15;
      Path file = write(changed);
      List<byte[]> read = new ArrayList<>();
      // Some bytes of a gzip header have no effect on the data.
      Throwable _ = fault(file, SMALL.withCompression(compression), read);
      same(read, records.subList(0, read.size()));
    }
  }

  /// The length 35,615 is 0x8b1f, which begins a gzip file; the other lengths begin zlib streams.
  @ParameterizedTest
  @ValueSource(ints = {0x8b1f, 0x9c78, 0x0178})
  void aLengthThatLooksLikeACompressedFileIsALength(int length) throws IOException {
    List<byte[]> records = List.of(TestFiles.bytes(5, length));
    Path file = write(Framed.of(records));
    same(readAll(file, SMALL), records);
  }

  @ParameterizedTest
  @EnumSource
  void anEmptyFileHasNoRecords(Compression compression) throws IOException {
    Path file = write(new byte[0]);
    assertThat(readAll(file, SMALL.withCompression(compression))).isEmpty();
    Path stream = write(compressed(new byte[0], compression));
    assertThat(readAll(stream, SMALL)).isEmpty();
  }

  @Test
  void plainBytesAreNoCompressedFile() throws IOException {
    Path file = write(Framed.of(RECORDS));
    assertThat(fault(file, SMALL.withCompression(Compression.GZIP), new ArrayList<>()).kind())
        .isEqualTo("invalid-compression");
    assertThat(fault(file, SMALL.withCompression(Compression.ZLIB), new ArrayList<>()).kind())
        .isEqualTo("invalid-compression");
  }

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

  @Test
  void aRecordIsGoneWithItsReader() throws IOException {
    Path file = write(Framed.of(RECORDS));
    try (GantrySession session = GantrySession.open()) {
      TfRecordReader reader = TfRecordReader.open(session, file, SMALL);
      assertThatThrownBy(reader::record).isInstanceOf(MisuseException.class);
      assertThat(reader.next()).isTrue();
      MemorySegment record = reader.record();
      reader.close();
      reader.close();
      assertThatThrownBy(() -> record.get(ValueLayout.JAVA_BYTE, 0))
          .isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(reader::record).isInstanceOf(MisuseException.class);
      assertThatThrownBy(reader::next).isInstanceOf(MisuseException.class);
    }
  }

  @Test
  void foldersAndMissingFilesAreNoFiles() {
    try (GantrySession session = GantrySession.open()) {
      assertThatThrownBy(() -> TfRecordReader.open(session, folder, SMALL))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("EISDIR");
      assertThatThrownBy(() -> TfRecordReader.open(session, folder.resolve("no"), SMALL))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOENT");
      assertThatThrownBy(() -> TfRecordReader.open(session, Path.of("/dev/null"), SMALL))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("not-a-regular-file");
    }
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

  private static byte[] framed(ByteArrayOutputStream records) {
    return Framed.of(List.of(Arrays.copyOf(records.toByteArray(), 12_000), records.toByteArray()));
  }
}
