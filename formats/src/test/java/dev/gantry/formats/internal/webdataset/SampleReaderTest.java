// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.ChangingFile;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Archives are read by the rules of Python's tarfile and of webdataset, and errors name the
/// faults.
@ExtendWith(NoLeaks.class)
class SampleReaderTest {
  private static final Charset UTF_8 = StandardCharsets.UTF_8;
  private static final byte[] NOTHING = {};

  @TempDir private Path temporary;

  /// Returns all values as `sample:key:field=data`.
  private List<String> read(byte[] archive) {
    Path file = HandmadeTar.write(temporary.resolve("a.tar"), archive);
    return read(GantrySession.shared(), file);
  }

  private static List<String> read(GantrySession session, Path file) {
    List<String> values = new ArrayList<>();
    try (SampleReader reader = SampleReader.open(session, Location.of(file))) {
      for (var next = reader.next(); next.isPresent(); next = reader.next()) {
        SampleReader.Value value = next.get();
        StringBuilder data = new StringBuilder();
        for (MemorySegment part = reader.tar().read();
            part.byteSize() > 0;
            part = reader.tar().read()) {
          data.append(new String(part.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.ISO_8859_1));
        }
        values.add(value.sample() + ":" + value.key() + ":" + value.field() + "=" + data);
      }
    }
    return values;
  }

  @Test
  void anArchiveThatChangesAtAnyCallIsOfOneVersionOrRefused() throws IOException {
    byte[] value = TestFiles.bytes(1, 300_000);
    byte[] other = TestFiles.bytes(2, 300_000);
    ChangingFile.everywhere(
        temporary.resolve("changing.tar"),
        new HandmadeTar().file("a.bin", value).file("b.bin", value).bytes(),
        new HandmadeTar().file("a.bin", other).file("b.bin", other).bytes(),
        (session, file) ->
            String.join("\n", read(session, file)).getBytes(StandardCharsets.ISO_8859_1));
  }

  private MalformedFileException fault(byte[] archive) {
    return catchThrowableOfType(MalformedFileException.class, () -> read(archive));
  }

  @ParameterizedTest
  @CsvSource({
    "000.png, 3",
    "000.seg.png, 3",
    "a.b/000.png, 7",
    "./000.png, 5",
    "a/b/000, -1",
    "000, -1",
    ".hidden, -1",
    "a/.hidden, 2",
    "a.b/.hidden, -1",
    "a//.x, 3",
    "a.b/c/.x, 6",
    "a., 1",
    "/.x, 1",
  })
  void aKeyEndsWhereWebdatasetsPatternSays(String name, int dot) {
    assertThat(SampleReader.dot(name)).isEqualTo(dot);
  }

  @Test
  void consecutiveMembersOfOneKeyAreASample() {
    byte[] archive =
        new HandmadeTar()
            .file("a.txt", "1")
            .file("a.CLS", "2")
            .file("b.txt", "3")
            .file("a.txt", "4")
            .bytes();
    assertThat(read(archive)).containsExactly("0:a:txt=1", "0:a:cls=2", "1:b:txt=3", "2:a:txt=4");
    assertThat(read(HandmadeTar.gzip(archive))).isEqualTo(read(archive));
  }

  @Test
  void whatIsNoFileOfASampleIsPassedOver() {
    byte[] archive =
        new HandmadeTar()
            .member("folder/", '5', NOTHING, _ -> {})
            .member("old.folder/", '\0', NOTHING, _ -> {})
            .file("a.txt", "1")
            .member("link.png", '2', NOTHING, _ -> {})
            .member("hard.png", '1', NOTHING, header -> HandmadeTar.put(header, 124, "7777777"))
            .file("__meta__", "x")
            .file("__meta__/b.txt", "x")
            .file("README", "x")
            .member("volume.txt", 'V', "label".getBytes(UTF_8), _ -> {})
            .file("a.__x__", "2")
            .member("a.old", '\0', "3".getBytes(UTF_8), _ -> {})
            .member("a.contiguous", '7', "4".getBytes(UTF_8), _ -> {})
            .bytes();
    assertThat(read(archive))
        .containsExactly("0:a:txt=1", "0:a:__x__=2", "0:a:old=3", "0:a:contiguous=4");
  }

  @Test
  void longNamesAndSizesOfAllFormatsAreRead() {
    String folder = "f".repeat(150);
    byte[] data = "data".getBytes(UTF_8);
    byte[] archive =
        new HandmadeTar()
            .pax('g', "comment=of all")
            .pax('x', "mtime=1.5", "path=" + folder + "/ü.txt")
            .file("short", "1")
            .member("././@LongLink", 'L', (folder + "/b.txt\0").getBytes(UTF_8), _ -> {})
            .member("././@LongLink", 'K', "target\0".getBytes(UTF_8), _ -> {})
            .file("short", "2")
            .member("c.txt", '0', data, header -> HandmadeTar.put(header, 345, "prefix"))
            .member("d.txt", '0', data, SampleReaderTest::base256)
            .pax('x', "size=4")
            .member("e.txt", '0', data, header -> HandmadeTar.put(header, 124, "00000000000"))
            .member("g.txt", '0', data, header -> HandmadeTar.put(header, 124, "         4 \0"))
            .bytes();
    assertThat(read(archive))
        .containsExactly(
            "0:" + folder + "/ü:txt=1",
            "1:" + folder + "/b:txt=2",
            "2:prefix/c:txt=data",
            "3:d:txt=data",
            "4:e:txt=data",
            "5:g:txt=data");
  }

  private static void base256(byte[] header) {
    Arrays.fill(header, 124, 136, (byte) 0);
    header[124] = (byte) 0x80;
    header[135] = 4;
  }

  @Test
  void archivesWithoutSamplesAreEmpty() {
    assertThat(read(new HandmadeTar().bytes())).isEmpty();
    assertThat(read(new byte[TarHeader.BYTES])).isEmpty();
  }

  static Stream<Arguments> faults() {
    byte[] good = new HandmadeTar().file("a.txt", "1").bytes();
    byte[] flipped = good.clone();
    flipped[3] ^= 1;
    byte[] gzip = HandmadeTar.gzip(good);
    byte[] crc = gzip.clone();
    crc[crc.length - 8] ^= 1;
    byte[] longName = new byte[TarReader.MAX_NAME_LENGTH + 1];
    Arrays.fill(longName, (byte) 'n');
    HandmadeTar many = new HandmadeTar();
    for (int i = 0; i <= SampleReader.MAX_FIELDS; i++) {
      many.file("a." + i, NOTHING);
    }
    byte[] one = {1};
    return Stream.of(
        Arguments.of("empty", NOTHING, "empty-file", 0),
        Arguments.of("no end", Arrays.copyOf(good, 1024), "truncated", 1024),
        Arguments.of("half a header", Arrays.copyOf(good, 500), "truncated", 0),
        Arguments.of("no data", Arrays.copyOf(good, 512), "truncated", 0),
        Arguments.of("checksum", flipped, "header-checksum", 0),
        Arguments.of("no gzip end", Arrays.copyOf(gzip, 40), "truncated", 0),
        Arguments.of("gzip checksum", crc, "invalid-compression", 2048),
        Arguments.of(
            "same member",
            new HandmadeTar().file("a.x", "").file("a.X", "").bytes(),
            "duplicate-member",
            512),
        Arguments.of(
            "sparse",
            new HandmadeTar().member("a.x", 'S', NOTHING, _ -> {}).bytes(),
            "sparse-member",
            0),
        Arguments.of(
            "pax sparse",
            new HandmadeTar().pax('x', "GNU.sparse.major=1").file("a.x", "").bytes(),
            "sparse-member",
            1024),
        Arguments.of(
            "name for all", new HandmadeTar().pax('g', "path=a").bytes(), "invalid-header", 0),
        Arguments.of(
            "no record",
            new HandmadeTar().member("p", 'x', "9 a=b\n".getBytes(UTF_8), _ -> {}).bytes(),
            "invalid-header",
            0),
        Arguments.of(
            "negative size",
            new HandmadeTar()
                .member("a.x", '0', one, h -> Arrays.fill(h, 124, 136, (byte) -1))
                .bytes(),
            "invalid-header",
            0),
        Arguments.of(
            "no octal size",
            new HandmadeTar().member("a.x", '0', one, h -> HandmadeTar.put(h, 124, "9")).bytes(),
            "invalid-header",
            0),
        Arguments.of(
            "huge size",
            new HandmadeTar().pax('x', "size=" + Long.MAX_VALUE).file("a.x", "").bytes(),
            "invalid-header",
            0),
        Arguments.of(
            "large size",
            new HandmadeTar().pax('x', "size=1000000000000").file("a.x", "").bytes(),
            "truncated",
            1024),
        Arguments.of(
            "large header",
            new HandmadeTar()
                .member("L", 'L', one, h -> HandmadeTar.put(h, 124, "77777777777"))
                .bytes(),
            "header-too-large",
            0),
        Arguments.of(
            "long name",
            new HandmadeTar().member("L", 'L', longName, _ -> {}).file("a.x", "").bytes(),
            "name-too-long",
            512 + 9 * 512),
        Arguments.of(
            "header of nothing",
            new HandmadeTar().pax('x', "path=a").bytes(),
            "invalid-header",
            1024),
        Arguments.of(
            "many members", many.bytes(), "too-many-members", SampleReader.MAX_FIELDS * 512));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("faults")
  void faultsAreNamed(String name, byte[] archive, String kind, long offset) {
    MalformedFileException fault = fault(archive);
    assertThat(fault.kind()).isEqualTo(kind);
    assertThat(fault.offset()).isEqualTo(offset);
  }
}
