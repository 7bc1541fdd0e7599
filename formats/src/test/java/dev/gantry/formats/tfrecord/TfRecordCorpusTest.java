// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Gantry's verdict on each corpus file is the one that the file was made for.
@ExtendWith(NoLeaks.class)
class TfRecordCorpusTest {
  static Stream<Map.Entry<String, Verdict>> files() {
    return Verdict.all().entrySet().stream();
  }

  static String digest(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void readAll(Path file, TfRecordOptions options, List<String> digests) {
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader = TfRecordReader.open(session, file, options)) {
      long offset = 0;
      while (reader.next()) {
        assertThat(reader.number()).isEqualTo(digests.size());
        assertThat(reader.offset()).isEqualTo(offset);
        digests.add(digest(reader.record().toArray(ValueLayout.JAVA_BYTE)));
        offset += reader.record().byteSize() + Framing.BYTES;
        assertThat(reader.position())
            .isEqualTo(new TfRecordReader.Position(offset, digests.size()));
      }
    }
  }

  private static void check(String name, Verdict verdict, TfRecordOptions options) {
    Path file = Verdict.CORPUS.resolve(name);
    List<String> digests = new ArrayList<>();
    if (verdict.error() == null) {
      readAll(file, options, digests);
    } else {
      MalformedFileException error =
          catchThrowableOfType(MalformedFileException.class, () -> readAll(file, options, digests));
      assertThat(error).isNotNull();
      assertThat(error.kind()).isEqualTo(verdict.error().kind());
      assertThat(error.offset()).isEqualTo(verdict.error().offset());
      assertThat(error.file()).isEqualTo(Location.of(file));
      assertThat(error)
          .hasMessageContaining(file.toString())
          .hasMessageContaining("record " + verdict.error().record() + ":");
    }
    assertThat(digests).isEqualTo(verdict.records());
  }

  @ParameterizedTest
  @MethodSource("files")
  void theVerdictHolds(Map.Entry<String, Verdict> entry) {
    check(entry.getKey(), entry.getValue(), TfRecordOptions.defaults());
  }

  @ParameterizedTest
  @MethodSource("files")
  void theVerdictHoldsInSmallChunksOfAKnownCompression(Map.Entry<String, Verdict> entry) {
    check(
        entry.getKey(),
        entry.getValue(),
        TfRecordOptions.defaults()
            .withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES)
            .withCompression(entry.getValue().compression()));
  }

  @ParameterizedTest
  @MethodSource("files")
  void theCompressionIsFound(Map.Entry<String, Verdict> entry) {
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader =
            TfRecordReader.open(
                session, Verdict.CORPUS.resolve(entry.getKey()), TfRecordOptions.defaults())) {
      assertThat(reader.compression()).isEqualTo(entry.getValue().compression());
    }
  }

  @Test
  void whatTensorFlowWroteIsTheSamePlainAndCompressed() {
    List<String> plain = new ArrayList<>();
    List<String> compressed = new ArrayList<>();
    Path folder = Verdict.CORPUS.resolve("from-tensorflow");
    readAll(folder.resolve("part-m-00000"), TfRecordOptions.defaults(), plain);
    readAll(folder.resolve("part-m-00000.gz"), TfRecordOptions.defaults(), compressed);
    assertThat(plain).hasSize(5).isEqualTo(compressed);
  }

  /// With a policy that skips corrupt records, all intact records are read.
  @ParameterizedTest
  @MethodSource("files")
  void aFaultThatIsSkippedIsCounted(Map.Entry<String, Verdict> entry) {
    Optional<Verdict.Fault> error = Optional.ofNullable(entry.getValue().error());
    List<String> digests = new ArrayList<>();
    TfRecordOptions options =
        TfRecordOptions.defaults().withCorruption(new CorruptionPolicy.Skip(1));
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader =
            TfRecordReader.open(session, Verdict.CORPUS.resolve(entry.getKey()), options)) {
      while (reader.next()) {
        digests.add(digest(reader.record().toArray(ValueLayout.JAVA_BYTE)));
      }
      assertThat(reader.statistics().skipped())
          .isEqualTo(error.isPresent() ? Map.of(error.get().kind(), 1L) : Map.<String, Long>of());
      assertThat(reader.statistics().records()).isEqualTo(digests.size());
    }
    assertThat(digests).startsWith(entry.getValue().records().toArray(String[]::new));
    boolean oneMore = entry.getKey().equals("bad-data.tfrecord");
    assertThat(digests).hasSize(entry.getValue().records().size() + (oneMore ? 1 : 0));
  }
}
