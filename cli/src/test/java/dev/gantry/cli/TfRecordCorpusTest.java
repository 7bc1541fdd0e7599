// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs commands on the TFRecord files of a corpus, for each of which there is a verdict.
@ExtendWith(NoLeaks.class)
class TfRecordCorpusTest {
  private static final Path CORPUS =
      Path.of("..", "formats", "src", "test", "resources", "corpus", "tfrecord");

  private static final Map<?, ?> VERDICTS = JsonTree.verdicts(CORPUS);

  @TempDir private Path temporary;

  private static Map<?, ?> verdict(Object file) {
    return (Map<?, ?>) VERDICTS.get(file);
  }

  static Stream<?> good() {
    return VERDICTS.keySet().stream().filter(file -> verdict(file).get("error") == null);
  }

  static Stream<?> bad() {
    return VERDICTS.keySet().stream().filter(file -> verdict(file).get("error") != null);
  }

  static Stream<?> examples() {
    return good().filter(file -> verdict(file).containsKey("features"));
  }

  @Test
  void everyFileHasAVerdict() throws IOException {
    try (Stream<Path> files = Files.list(CORPUS)) {
      List<String> names =
          files
              .map(file -> file.getFileName().toString())
              .filter(name -> name.contains(".tfrecord"))
              .toList();
      assertThat(VERDICTS.keySet().stream().map(Object::toString))
          .containsExactlyInAnyOrderElementsOf(names);
    }
    assertThat(good()).isNotEmpty();
    assertThat(bad()).isNotEmpty();
    assertThat(examples()).isNotEmpty();
  }

  @ParameterizedTest
  @MethodSource("good")
  void digestAgreesWithTheVerdict(String file) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("digest", "--json", CORPUS.resolve(file)));
    assertThat(document.keySet().stream().map(Object::toString))
        .containsExactly("records", "bytes");
    assertThat(document.get("records")).isEqualTo(verdict(file).get("records"));
  }

  @ParameterizedTest
  @MethodSource("good")
  void digestForPeopleNumbersTheRecords(String file) {
    List<?> records = (List<?>) verdict(file).get("records");
    CommandLineRun run = TestSamples.run("digest", CORPUS.resolve(file));
    List<String> lines = run.out().lines().toList();
    assertThat(lines).hasSameSizeAs(records);
    for (int i = 0; i < lines.size(); i++) {
      assertThat(lines.get(i)).isEqualTo(records.get(i) + "  " + i);
    }
  }

  /// The name of the copy announces another format, so that only the first bytes say that it is
  /// TFRecord.
  @ParameterizedTest
  @MethodSource("good")
  void aFileWithRecordsIsKnownByAnyName(String file) throws IOException {
    List<?> records = (List<?>) verdict(file).get("records");
    Path copy = Files.copy(CORPUS.resolve(file), temporary.resolve("x.safetensors"));
    if (!records.isEmpty()) {
      assertThat(TestSamples.recordsOf(copy)).isEqualTo(records);
    }
  }

  @ParameterizedTest
  @MethodSource("good")
  void inspectAgreesWithTheVerdict(String file) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("inspect", "--json", CORPUS.resolve(file)));
    assertThat(document.keySet().stream().map(Object::toString))
        .containsExactly(
            "format",
            "compression",
            "records",
            "bytes",
            "features",
            "featuresAbsence",
            "index",
            "files");
    assertThat(document.get("format")).isEqualTo("tfrecord");
    Object compression = verdict(file).get("compression");
    assertThat(document.get("compression"))
        .isEqualTo(compression == null ? "none" : compression.toString().toLowerCase(Locale.ROOT));
    assertThat(document.get("records")).isEqualTo(((List<?>) verdict(file).get("records")).size());
    Map<?, ?> index = (Map<?, ?>) document.get("index");
    assertThat(index.get("usable")).isEqualTo(false);
    assertThat((String) index.get("reason")).contains(file);
    assertThat(((List<?>) document.get("files"))).hasSize(1);
  }

  @ParameterizedTest
  @MethodSource("examples")
  void inspectKnowsEveryFeatureAndItsKind(String file) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("inspect", "--json", CORPUS.resolve(file)));
    assertThat(document.get("featuresAbsence")).isEqualTo("");
    Map<?, ?> features = (Map<?, ?>) document.get("features");
    for (Object record : (List<?>) verdict(file).get("features")) {
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) record).entrySet()) {
        Map<?, ?> feature = (Map<?, ?>) features.get(entry.getKey());
        List<?> values = (List<?>) entry.getValue();
        assertThat(feature.get("kind")).isEqualTo(values.get(0));
        if (feature.get("length") instanceof Integer length) {
          assertThat(elements(values)).isEqualTo(length);
        } else {
          assertThat(feature.get("length")).isEqualTo("varies");
        }
      }
    }
  }

  /// Returns the number of elements of a verdict's feature. The verdict writes bytes in
  /// hexadecimal.
  private static int elements(List<?> feature) {
    List<?> list = (List<?>) feature.get(1);
    return feature.get(0).equals("bytes") ? ((String) list.get(0)).length() / 2 : list.size();
  }

  /// The records before the fault are not printed, but the line has their number.
  @ParameterizedTest
  @MethodSource("bad")
  void theFaultIsNamedInOneLine(String file) {
    Map<?, ?> error = (Map<?, ?>) verdict(file).get("error");
    assertThat(error.get("record")).isEqualTo(((List<?>) verdict(file).get("records")).size());
    for (List<String> command :
        List.of(
            List.of("digest"),
            List.of("digest", "--json"),
            List.of("inspect"),
            List.of("inspect", "--json"))) {
      CommandLineRun run =
          TestSamples.fail(
              65, Stream.concat(command.stream(), Stream.of(CORPUS.resolve(file))).toArray());
      assertThat(run.err())
          .startsWith(
              "gantry: "
                  + CORPUS.resolve(file)
                  + ": offset "
                  + error.get("offset")
                  + ": "
                  + error.get("kind")
                  + ": record "
                  + error.get("record")
                  + ": ");
    }
  }

  @ParameterizedTest
  @MethodSource("bad")
  void nothingIsWrittenOfABadFile(String file) throws IOException {
    Path copy = Files.copy(CORPUS.resolve(file), temporary.resolve(file));
    for (CommandLineRun run :
        List.of(
            TestSamples.fail(65, "convert", copy, temporary.resolve("out")),
            TestSamples.fail(65, "convert", "--pad", copy, temporary.resolve("out")),
            TestSamples.fail(65, "index", copy))) {
      assertThat(run.err()).matches("(?s)gantry: .*: offset [0-9]+: [a-z0-9]+(-[a-z0-9]+)*: .+\n");
    }
    assertThat(TestSamples.names(temporary)).containsExactly(file);
  }

  @Test
  void whatTensorFlowWroteIsRead() {
    Path folder = CORPUS.resolve("from-tensorflow");
    List<?> records = TestSamples.recordsOf(folder.resolve("part-m-00000"));
    assertThat(records).hasSize(5);
    assertThat(TestSamples.recordsOf(folder.resolve("part-m-00000.gz"))).isEqualTo(records);
    assertThat(TestSamples.recordsOf(folder)).hasSize(10);
    assertThat(TestSamples.run("digest", folder).out().lines().toList().get(5))
        .isEqualTo(records.get(0) + "  part-m-00000.gz:0");
    assertThat(TestSamples.run("inspect", folder).out())
        .startsWith("TFRecord, 2 file(s), compression none, gzip, 10 records");
  }
}
