// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPOutputStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;
import org.jspecify.annotations.Nullable;

class TfRecordReaderPropertiesTest {
  private static final TfRecordOptions SMALL =
      TfRecordOptions.defaults()
          .withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES)
          .withCompression(Compression.NONE);

  private static Path file = Path.of("");

  @BeforeContainer
  static void makeFile() throws IOException {
    file = Files.createTempFile("gantry", ".tfrecord");
  }

  @AfterContainer
  static void deleteFile() throws IOException {
    Files.delete(file);
  }

  /// Returns records of random lengths, some of which end at the edges of chunks.
  @Provide
  Arbitrary<List<byte[]>> records() {
    Arbitrary<Integer> edges =
        Arbitraries.integers()
            .between(-30, 30)
            .flatMap(d -> Arbitraries.of(4096, 8192, 12_288).map(edge -> edge + d));
    Arbitrary<Integer> lengths =
        Arbitraries.oneOf(edges, Arbitraries.integers().between(0, 200), Arbitraries.just(0));
    return lengths.map(length -> TestFiles.bytes(length, length)).list().ofMaxSize(12);
  }

  private record Result(List<byte[]> records, @Nullable MalformedFileException fault) {}

  private static Result read(byte[] bytes, TfRecordOptions options) {
    List<byte[]> records = new ArrayList<>();
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader = TfRecordReader.open(session, Files.write(file, bytes), options)) {
      while (reader.next()) {
        records.add(reader.record().toArray(ValueLayout.JAVA_BYTE));
      }
      return new Result(records, null);
    } catch (MalformedFileException fault) {
      return new Result(records, fault);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void same(List<byte[]> actual, List<byte[]> expected) {
    assertThat(Framed.words(actual)).isEqualTo(Framed.words(expected));
  }

  @Property(tries = 300)
  void whatIsFramedIsRead(@ForAll("records") List<byte[]> records) {
    Result result = read(Framed.of(records), SMALL);
    assertThat(result.fault()).isNull();
    same(result.records(), records);
  }

  /// A checksum reveals every change of one byte.
  @Property(tries = 500)
  void aChangedByteIsAFaultOfItsOwnRecord(
      @ForAll("records") List<byte[]> records,
      @ForAll @IntRange(max = 1_000_000) int where,
      @ForAll @IntRange(min = 1, max = 255) int change) {
    byte[] bytes = Framed.of(records);
    if (bytes.length == 0) {
      return;
    }
    int at = where % bytes.length;
    bytes[at] ^= (byte) change;
    int hit = 0;
    int start = 0;
    while (at >= start + records.get(hit).length + Framing.BYTES) {
      start += records.get(hit).length + Framing.BYTES;
      hit++;
    }
    Result result = read(bytes, SMALL);
    same(result.records(), records.subList(0, hit));
    assertThat(result.fault()).isNotNull();
    assertThat(result.fault().offset()).isEqualTo(start);
    assertThat(result.fault()).hasMessageContaining("record " + hit + ":");
    assertThat(result.fault().kind())
        .isEqualTo(at < start + Framing.HEADER_BYTES ? "length-crc" : "data-crc");

    Result rest = read(bytes, SMALL.withCorruption(new CorruptionPolicy.Skip(1)));
    List<byte[]> others = new ArrayList<>(records);
    others.remove(hit);
    // The reader stops at a damaged length.
    same(
        rest.records(), result.fault().kind().equals("data-crc") ? others : others.subList(0, hit));
  }

  @Property(tries = 300)
  void aCutFileIsAFaultOfTheRecordThatIsCut(
      @ForAll("records") List<byte[]> records, @ForAll @IntRange(max = 1_000_000) int where) {
    byte[] bytes = Framed.of(records);
    int length = where % (bytes.length + 1);
    int whole = 0;
    int end = 0;
    while (whole < records.size() && end + records.get(whole).length + Framing.BYTES <= length) {
      end += records.get(whole).length + Framing.BYTES;
      whole++;
    }
    Result result = read(Arrays.copyOf(bytes, length), SMALL);
    same(result.records(), records.subList(0, whole));
    if (end == length) {
      assertThat(result.fault()).isNull();
    } else {
      assertThat(result.fault()).isNotNull();
      assertThat(result.fault().kind()).isEqualTo("truncated");
      assertThat(result.fault().offset()).isEqualTo(end);
    }
  }

  /// A damaged compressed file loses records, but gives no record that was not written.
  @Property(tries = 300)
  void damageToACompressedFileIsPassedOver(
      @ForAll boolean gzip,
      @ForAll @IntRange(max = 1_000_000) int where,
      @ForAll @IntRange(min = 1, max = 16) int changes,
      @ForAll @IntRange(min = 1, max = 255) int change)
      throws IOException {
    List<byte[]> records = new ArrayList<>();
    for (int i = 1; i <= 20; i++) {
      // Some records can be compressed, and others cannot.
      records.add(
          i % 2 == 0
              ? TestFiles.bytes(i, 50 * i)
              : String.valueOf(i).repeat(99).getBytes(US_ASCII));
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (OutputStream compressor =
        gzip ? new GZIPOutputStream(out) : new DeflaterOutputStream(out)) {
      compressor.write(Framed.of(records));
    }
    byte[] bytes = out.toByteArray();
    int at = where % bytes.length;
    for (int i = at; i < Math.min(bytes.length, at + changes); i++) {
      bytes[i] ^= (byte) change;
    }
    List<byte[]> found = new ArrayList<>();
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader =
            TfRecordReader.open(
                session,
                Files.write(file, bytes),
                SMALL
                    .withCompression(gzip ? Compression.GZIP : Compression.ZLIB)
                    .withCorruption(new CorruptionPolicy.Skip(100)))) {
      while (reader.next()) {
        found.add(reader.record().toArray(ValueLayout.JAVA_BYTE));
      }
      assertThat(reader.next()).isFalse();
      assertThat(Framed.words(records)).containsAll(Framed.words(found));
      if (found.size() < records.size()) {
        assertThat(reader.statistics().skipped()).isNotEmpty();
      }
    }
  }
}
