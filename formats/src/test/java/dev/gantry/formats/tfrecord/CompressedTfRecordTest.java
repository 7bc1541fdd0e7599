// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.source.InflatedSource;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// TFRecord files that are compressed by gzip or zlib, whole and damaged.
class CompressedTfRecordTest extends TfRecordReaderFixture {
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

  @Test
  void plainBytesAreNoCompressedFile() throws IOException {
    Path file = write(Framed.of(RECORDS));
    assertThat(fault(file, SMALL.withCompression(Compression.GZIP), new ArrayList<>()).kind())
        .isEqualTo("invalid-compression");
    assertThat(fault(file, SMALL.withCompression(Compression.ZLIB), new ArrayList<>()).kind())
        .isEqualTo("invalid-compression");
  }

  /// The stream ends where a read of the compressed file ends, so that nothing of it is left when
  /// the next byte is asked for.
  @Test
  void aByteBehindAZlibStreamIsRefused() throws IOException {
    byte[] framed = Framed.of(List.of(new byte[8165]));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (DeflaterOutputStream stored = new DeflaterOutputStream(out, new Deflater(0))) {
      stored.write(framed);
    }
    assertThat(out.size()).isEqualTo(8 << 10);
    Path file = write(concatenated(out.toByteArray(), new byte[1]));
    TfRecordOptions zlib = SMALL.withCompression(Compression.ZLIB);
    assertThat(fault(file, zlib, new ArrayList<>()))
        .hasMessageContaining("bytes behind the end of the zlib stream");
  }
}
