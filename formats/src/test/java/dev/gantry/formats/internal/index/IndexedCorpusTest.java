// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.Verdict;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The index of each corpus file leads to the values from which the file was made.
@ExtendWith(NoLeaks.class)
class IndexedCorpusTest {
  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  static Stream<Map.Entry<String, Verdict>> examples() {
    return Verdict.all().entrySet().stream()
        .filter(entry -> entry.getValue().compression() == Compression.NONE)
        .filter(entry -> !entry.getValue().features().isEmpty());
  }

  static Stream<Map.Entry<String, Verdict>> compressed() {
    return Verdict.all().entrySet().stream()
        .filter(entry -> entry.getValue().compression() != Compression.NONE);
  }

  static Stream<Map.Entry<String, Verdict>> corrupted() {
    return Verdict.all().entrySet().stream().filter(entry -> entry.getValue().error() != null);
  }

  private Path copy(String name) throws IOException {
    return Files.copy(Verdict.CORPUS.resolve(name), folder.resolve(Path.of(name).getFileName()));
  }

  private TfRecordIndex.Summary build(Path file) {
    return TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
  }

  private TfRecordIndex open(Path file) {
    return ((Usable) TfRecordIndex.open(file, session)).index();
  }

  /// Reads the values from the file at the offsets of the index.
  private static Verdict.Values stored(
      TfRecordIndex index, TfRecordIndex.Feature feature, byte[] file, long record) {
    FeatureSpec.Kind kind = feature.kind().orElseThrow();
    if (kind == FeatureSpec.Kind.INT64) {
      List<Object> values = new ArrayList<>();
      Arrays.stream(IndexReads.values(index, feature.name(), record)).forEach(values::add);
      return new Verdict.Values("int64", values);
    }
    int from = (int) IndexReads.valueOffset(index, feature.name(), record);
    byte[] bytes =
        Arrays.copyOfRange(
            file, from, from + (int) IndexReads.valueLength(index, feature.name(), record));
    if (kind == FeatureSpec.Kind.BYTES) {
      return new Verdict.Values("bytes", List.of(bytes));
    }
    ByteBuffer floats = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    List<Object> values = new ArrayList<>();
    while (floats.hasRemaining()) {
      values.add(floats.getFloat());
    }
    return new Verdict.Values("float", values);
  }

  private static void requireEqual(Verdict.Values found, Verdict.Values expected) {
    assertThat(found.kind()).isEqualTo(expected.kind());
    assertThat(Arrays.deepEquals(found.list().toArray(), expected.list().toArray())).isTrue();
  }

  @ParameterizedTest
  @MethodSource("examples")
  void everyValueIsWhereTheIndexSays(Map.Entry<String, Verdict> entry) throws IOException {
    Path file = copy(entry.getKey());
    byte[] bytes = Files.readAllBytes(file);
    List<Map<String, Verdict.Values>> expected = entry.getValue().features();
    TfRecordIndex.Summary summary = build(file);
    assertThat(summary.records()).isEqualTo(expected.size());
    assertThat(summary.recordBytes()).isEqualTo(bytes.length - 16L * expected.size());
    Map<String, Long> missing = new HashMap<>();
    TreeSet<String> names = new TreeSet<>();
    expected.forEach(features -> names.addAll(features.keySet()));
    try (TfRecordIndex index = open(file)) {
      assertThat(index.summary()).isEqualTo(summary);
      assertThat(summary.features().stream().map(TfRecordIndex.Feature::name))
          .containsExactlyInAnyOrderElementsOf(names);
      for (int record = 0; record < expected.size(); record++) {
        for (TfRecordIndex.Feature feature : summary.features()) {
          Verdict.Values values = expected.get(record).get(feature.name());
          if (values == null) {
            missing.merge(feature.name(), 1L, Long::sum);
          }
          if (feature.isDirect() || IndexReads.isPlaced(index, feature.name())) {
            requireEqual(stored(index, feature, bytes, record), values);
          }
        }
      }
    }
    for (TfRecordIndex.Feature feature : summary.features()) {
      assertThat(feature.missing()).isEqualTo(missing.getOrDefault(feature.name(), 0L));
      assertThat(feature.isDirect()).isNotEqualTo(feature.obstacle().isPresent());
    }
  }

  @ParameterizedTest
  @MethodSource("compressed")
  void aCompressedFileIsRefused(Map.Entry<String, Verdict> entry) throws IOException {
    Path file = copy(entry.getKey());
    assertThat(catchThrowable(() -> build(file)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(file.toString())
        .hasMessageContaining(entry.getValue().compression().name());
    assertThat(folder).isDirectoryContaining(path -> path.equals(file));
    assertThat(folder.toFile().list()).hasSize(1);
  }

  /// For any fault of the framing, the index reports the same as the reader.
  @ParameterizedTest
  @MethodSource("examples")
  void aCorruptedFileFailsAsItDoesForTheReader(Map.Entry<String, Verdict> entry)
      throws IOException {
    byte[] good = Files.readAllBytes(Verdict.CORPUS.resolve(entry.getKey()));
    Path file = folder.resolve("file");
    Random random = new Random(entry.getKey().hashCode());
    for (int i = 0; i < 50; i++) {
      byte[] bad = good.clone();
      bad[random.nextInt(bad.length)] ^= (byte) (1 << random.nextInt(8));
      if (i % 3 == 0) {
        bad = Arrays.copyOf(bad, random.nextInt(1, bad.length));
      }
      Files.write(file, bad);
      Throwable expected = catchThrowable(() -> read(file));
      if (expected != null) {
        assertThat(catchThrowable(() -> build(file)))
            .isInstanceOf(MalformedFileException.class)
            .hasMessage(expected.getMessage());
        assertThat(folder.toFile().list()).hasSize(1);
      }
    }
  }

  private void read(Path file) {
    TfRecordOptions options = TfRecordOptions.defaults().withCompression(Compression.NONE);
    try (TfRecordReader reader = TfRecordReader.open(session, file, options)) {
      while (reader.next()) {
        assertThat(reader.record()).isNotNull();
      }
    }
  }

  /// The records of the corrupted files are no examples, and this is found first.
  @ParameterizedTest
  @MethodSource("corrupted")
  void noFileOfTheCorpusThatIsCorruptedHasAnIndex(Map.Entry<String, Verdict> entry)
      throws IOException {
    Path file = copy(entry.getKey());
    Verdict.Fault fault = entry.getValue().error();
    boolean atOnce = fault.record() == 0;
    assertThat(catchThrowable(() -> build(file)))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            error -> {
              assertThat(error.kind()).isEqualTo(atOnce ? fault.kind() : "invalid-proto");
              assertThat(error.offset()).isZero();
            })
        .hasMessageContaining("record 0:");
    assertThat(folder.toFile().list()).hasSize(1);
  }

  private Map<String, Optional<Obstacle>> obstacles(String name) throws IOException {
    Map<String, Optional<Obstacle>> obstacles = new HashMap<>();
    build(copy(name))
        .features()
        .forEach(feature -> obstacles.put(feature.name(), feature.obstacle()));
    return obstacles;
  }

  @Test
  void whatIsNotAlikeSaysWhereAndWhy() throws IOException {
    assertThat(obstacles("examples-missing-feature.tfrecord"))
        .containsEntry("image", Optional.empty())
        .containsEntry("label", Optional.of(new Obstacle(1, "it is missing")));
    assertThat(obstacles("examples-wrong-length.tfrecord"))
        .containsOnlyKeys("image")
        .containsEntry("image", Optional.of(new Obstacle(1, "it has 63 bytes, not 64")));
    assertThat(obstacles("examples-floats-unpacked.tfrecord"))
        .containsEntry("x", Optional.of(new Obstacle(0, "its 5 floats are not packed")));
    assertThat(obstacles("examples-variable-length.tfrecord"))
        .containsEntry("text", Optional.of(new Obstacle(1, "it has 1 bytes, not 0")))
        .containsEntry("tokens", Optional.of(new Obstacle(0, "it has no value")));
    assertThat(obstacles("examples-keys-reversed.tfrecord"))
        .containsEntry("image", Optional.empty())
        .containsEntry("label", Optional.empty());
  }

  @Test
  void aRecordThatIsNoExampleSaysWhich() throws IOException {
    Path file = copy("blobs.tfrecord");
    assertThat(catchThrowable(() -> build(file)))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            error -> {
              assertThat(error.kind()).isEqualTo("invalid-proto");
              // The offset is that of the second record, because the first record is empty.
              assertThat(error.offset()).isEqualTo(16);
            })
        .hasMessageContaining("record 1: byte ");
    assertThat(folder.toFile().list()).hasSize(1);
  }

  @Test
  void anEmptyFileHasAnIndex() throws IOException {
    Path file = copy("empty.tfrecord");
    assertThat(build(file)).isEqualTo(new TfRecordIndex.Summary(0, 0, List.of()));
    try (TfRecordIndex index = open(file)) {
      assertThat(index.summary()).isEqualTo(new TfRecordIndex.Summary(0, 0, List.of()));
    }
  }
}
