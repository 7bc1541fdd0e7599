// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.samples.demo.DigitAnswers;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class IndexCommandTest {
  @TempDir private Path temporary;
  private Path first;
  private Path second;

  @BeforeEach
  void write() {
    first =
        TestSamples.writeRecords(
            temporary.resolve("first.tfrecord"),
            Compression.NONE,
            new ExampleBuilder().int64s("label", 1).floats("x", 1, 2),
            new ExampleBuilder().int64s("label", 2).floats("x", 3, 4));
    second =
        TestSamples.writeRecords(
            temporary.resolve("second.tfrecord"),
            Compression.NONE,
            new ExampleBuilder().bytes("text", new byte[3]),
            new ExampleBuilder().bytes("text", new byte[4]));
  }

  private static Path indexOf(Path file) {
    return Path.of(file + ".gantry-index");
  }

  private CommandLineRun check(int exitCode, Object... more) {
    CommandLineRun run = CommandLineRun.of(concat(List.of("index", "--check"), more));
    assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
    return run;
  }

  private static Object[] concat(List<?> first, Object[] more) {
    return Stream.concat(first.stream(), Stream.of(more)).toArray();
  }

  @Test
  void eachFileGetsAnIndexBesideIt() {
    List<String> lines = TestSamples.run("index", first, second).out().lines().toList();
    assertThat(lines).hasSize(3);
    assertThat(lines.get(0)).matches("\\S+first\\.tfrecord: 2 records, 2 features, [0-9.]+ s");
    assertThat(lines.get(1)).matches("\\S+second\\.tfrecord: 2 records, 1 features, [0-9.]+ s");
    assertThat(lines.get(2)).startsWith("  'text' must be parsed: in record 1 ");
    assertThat(indexOf(first)).isRegularFile();
    assertThat(indexOf(second)).isRegularFile();

    CommandLineRun run = check(0, first, second);
    assertThat(run.err()).isEmpty();
    assertThat(run.out().lines())
        .containsExactly(
            first + ": usable, 2 records, 2 features", second + ": usable, 2 records, 1 features");
  }

  @Test
  void theListOfASetIsPassedOverAmongItsFilesAndToldAlone() {
    Path folder = temporary.resolve("set");
    try (TfRecordShards shards = TfRecordShards.create(folder, "train", 2, Compression.NONE)) {
      shards.commit();
    }
    Path list = folder.resolve("_gantry-files-train");
    List<Path> files = TfRecordShards.files(folder, "train", 2);
    TestSamples.run("index", list, files.getFirst(), files.getLast());
    assertThat(indexOf(files.getFirst())).isRegularFile();
    assertThat(indexOf(files.getLast())).isRegularFile();
    assertThat(TestSamples.fail(64, "index", list).err())
        .contains(list.toString(), "the list of a set of files; name the set's folder");
    assertThat(TestSamples.fail(65, "inspect", list).err())
        .contains(list.toString(), "the list of a set of files; name the set's folder");
  }

  @Test
  void aFolderIsAllOfItsFiles() {
    Map<?, ?> document = TestSamples.json(TestSamples.run("index", "--json", temporary));
    List<?> files = (List<?>) document.get("files");
    assertThat(files).hasSize(2);
    Map<?, ?> one = (Map<?, ?>) files.getFirst();
    assertThat(one.get("file")).isEqualTo(first.toString());
    assertThat(one.get("index")).isEqualTo(indexOf(first).toString());
    assertThat(one.get("records")).isEqualTo(2);
    assertThat(one.get("features"))
        .isEqualTo(
            Map.of(
                "label", Map.of("kind", "int64", "missing", 0, "length", 1, "absence", ""),
                "x", Map.of("kind", "float", "missing", 0, "length", 2, "absence", "")));
    Map<?, ?> features = (Map<?, ?>) ((Map<?, ?>) files.getLast()).get("features");
    Map<?, ?> text = (Map<?, ?>) features.get("text");
    assertThat(text.get("length")).isEqualTo("varies");
    assertThat((String) text.get("absence")).startsWith("in record 1 ");
    // The indexes themselves are not indexed by a second run.
    assertThat(
            (List<?>) TestSamples.json(TestSamples.run("index", "--json", temporary)).get("files"))
        .hasSize(2);
  }

  @Test
  void indexesThatAShellNamesBesideTheirFilesArePassedOver() {
    TestSamples.run("index", first, second);
    assertThat(check(0, first, indexOf(first), second, indexOf(second)).out().lines()).hasSize(2);
    assertThat(check(64, indexOf(first)).err())
        .contains("name the TFRecord file that it belongs to");
  }

  @Test
  void aMissingIndexIsNotUsable() {
    TestSamples.run("index", first);
    CommandLineRun run = check(1, first, second);
    assertThat(run.out()).isEqualTo(first + ": usable, 2 records, 2 features\n");
    assertThat(run.err()).isEqualTo("gantry: " + indexOf(second) + " does not exist\n");
    Map<?, ?> document = TestSamples.json(check(1, "--json", first, second));
    assertThat(document.get("files"))
        .isEqualTo(
            List.of(
                Map.of("file", first.toString(), "usable", true, "reason", ""),
                Map.of(
                    "file",
                    second.toString(),
                    "usable",
                    false,
                    "reason",
                    indexOf(second) + " does not exist")));
    assertThat(indexOf(second)).doesNotExist();
  }

  @Test
  void aStaleIndexIsNotUsable() throws IOException {
    TestSamples.run("index", first);
    Files.write(first, new byte[1], StandardOpenOption.APPEND);
    assertThat(check(1, first).err()).startsWith("gantry: " + indexOf(first) + " is stale: ");
  }

  @Test
  void aDamagedIndexIsNotUsable() throws IOException {
    TestSamples.run("index", first);
    byte[] bytes = Files.readAllBytes(indexOf(first));
    bytes[bytes.length - 1]++;
    Files.write(indexOf(first), bytes);
    assertThat(check(1, first).err())
        .startsWith("gantry: " + indexOf(first) + ": offset ")
        .contains("checksum-mismatch");
    // `inspect` reports the damaged index, and counts the records nevertheless.
    Map<?, ?> document = TestSamples.json(TestSamples.run("inspect", "--json", first));
    assertThat(document.get("records")).isEqualTo(2);
    assertThat((String) ((Map<?, ?>) document.get("index")).get("reason"))
        .contains("checksum-mismatch");
  }

  @Test
  void inspectGoesByTheIndex() {
    Map<?, ?> before = TestSamples.json(TestSamples.run("inspect", "--json", first));
    TestSamples.run("index", first);
    Map<?, ?> after = TestSamples.json(TestSamples.run("inspect", "--json", first));
    assertThat(after.get("index")).isEqualTo(Map.of("usable", true, "reason", ""));
    for (String same : List.of("compression", "records", "bytes", "features")) {
      assertThat(after.get(same)).isEqualTo(before.get(same));
    }
    assertThat(TestSamples.run("inspect", first).out())
        .contains("compression none, 2 records")
        .contains("  index: usable\n");
  }

  @Test
  void whatIsCompressedHasNoIndex() throws IOException {
    Path file =
        TestSamples.writeRecords(
            temporary.resolve("x.gz"), Compression.GZIP, new ExampleBuilder().int64s("a", 1));
    assertThat(TestSamples.fail(64, "index", file).err()).contains(file + " is compressed (GZIP)");
    assertThat(TestSamples.names(temporary)).doesNotContain("x.gz.gantry-index");
    assertThat(TestSamples.run("inspect", file).out())
        .contains("compression gzip, 1 records")
        .contains("index: not usable: " + file + " is compressed");
  }

  @Test
  void safetensorsGetChecksumsThatLoadsCompare() throws IOException {
    Path model = DigitAnswers.extract(Files.createDirectory(temporary.resolve("model")));
    assertThat(TestSamples.fail(64, "load", "--verify", model).err()).contains("gantry index");
    assertThat(TestSamples.run("index", first, model).out())
        .contains(first + ": ")
        .contains(": checksums of ");
    assertThat(indexOf(first)).exists();
    assertThat(TestSamples.run("load", "--verify", "--device", "host", model).out())
        .contains("host", "verified: ");
    Map<?, ?> document = TestSamples.json(TestSamples.run("index", "--json", model));
    assertThat((List<?>) document.get("sums")).isNotEmpty();
    assertThat((List<?>) document.get("files")).isEmpty();
    Path weights;
    try (Stream<Path> files = Files.walk(model)) {
      weights =
          files.filter(file -> file.toString().endsWith(".safetensors")).findFirst().orElseThrow();
    }
    // As a shell names both.
    TestSamples.run("index", weights, weights + ".gantry-sums");
    byte[] bytes = Files.readAllBytes(weights);
    bytes[bytes.length - 1] ^= 1;
    Files.write(weights, bytes);
    assertThat(TestSamples.fail(65, "load", "--verify", "--device", "host", model).err())
        .contains(weights.toString())
        .contains("checksum-mismatch: tensor '");
    assertThat(TestSamples.fail(64, "index", "--check", model).err())
        .contains("--check applies only to TFRecord files");
  }

  @Test
  void otherFormatsHaveNoIndex() {
    assertThat(TestSamples.fail(64, "load", first).err())
        .contains("FILE must be weights: " + first);
  }
}
