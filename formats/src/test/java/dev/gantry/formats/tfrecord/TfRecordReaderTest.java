// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Records of TFRecord files, read one after the other or left for later.
@Tag("jdk-files")
class TfRecordReaderTest extends TfRecordReaderFixture {
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

  @ParameterizedTest
  @EnumSource
  void anEmptyFileHasNoRecords(Compression compression) throws IOException {
    Path file = write(new byte[0]);
    assertThat(readAll(file, SMALL.withCompression(compression))).isEmpty();
    Path stream = write(compressed(new byte[0], compression));
    assertThat(readAll(stream, SMALL)).isEmpty();
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
}
