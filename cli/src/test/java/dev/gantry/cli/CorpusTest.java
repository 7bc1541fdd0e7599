// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.cli.internal.digest.TensorDigests;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs commands on files for which safetensors' own reader gave the verdicts.
class CorpusTest {
  private static final Path CORPUS =
      Path.of("..", "formats", "src", "test", "resources", "corpus", "safetensors");

  /// A file of another writer. It has no verdict, because it was added to the corpus later.
  private static final String WRITTEN_BY_DJL = "written-by-djl.safetensors";

  private static final Map<?, ?> VERDICTS = JsonTree.verdicts(CORPUS);

  private static boolean isValid(Object file) {
    return CorpusOnDevice.isValid(file, verdict(file));
  }

  private static Map<?, ?> verdict(Object file) {
    return (Map<?, ?>) VERDICTS.get(file);
  }

  static Stream<?> valid() {
    return VERDICTS.keySet().stream().filter(CorpusTest::isValid);
  }

  static Stream<?> invalid() {
    return VERDICTS.keySet().stream().filter(file -> !isValid(file));
  }

  @Test
  void everyFileHasAVerdict() throws IOException {
    try (Stream<Path> files = Files.list(CORPUS)) {
      List<String> names =
          files
              .map(file -> file.getFileName().toString())
              .filter(name -> name.endsWith(".safetensors") && !name.equals(WRITTEN_BY_DJL))
              .toList();
      assertThat(names).isNotEmpty();
      assertThat(VERDICTS.keySet().stream().map(Object::toString))
          .containsExactlyInAnyOrderElementsOf(names);
    }
  }

  @Test
  void whatDjlWroteIsRead() {
    CommandLineRun run = CommandLineRun.of("digest", "--json", CORPUS.resolve(WRITTEN_BY_DJL));
    assertThat(run.exitCode()).as(run.err()).isZero();
    Map<?, ?> tensors = (Map<?, ?>) ((Map<?, ?>) run.json()).get("tensors");
    assertThat(tensors.values().stream().map(tensor -> (Map<?, ?>) tensor))
        .extracting(tensor -> tensor.get("dtype") + " " + tensor.get("shape"))
        .containsExactlyInAnyOrder("I8 [2, 3]", "I8 [2, 2]");
  }

  @ParameterizedTest
  @MethodSource("valid")
  void digestAgreesWithTheReference(String file) {
    CommandLineRun run = CommandLineRun.of("digest", "--json", CORPUS.resolve(file));

    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    Map<?, ?> document = (Map<?, ?>) run.json();
    assertThat(document.keySet().stream().map(Object::toString))
        .containsExactly("tensors", "bytes", "transport");
    assertThat(document.get("tensors")).isEqualTo(verdict(file).get("tensors"));
  }

  @ParameterizedTest
  @MethodSource("valid")
  void inspectAgreesWithTheReference(String file) throws IOException {
    CommandLineRun run = CommandLineRun.of("inspect", "--json", CORPUS.resolve(file));

    assertThat(run.exitCode()).as(run.err()).isZero();
    Map<?, ?> document = (Map<?, ?>) run.json();
    assertThat(document.keySet().stream().map(Object::toString))
        .containsExactly("format", "tensors", "metadata");
    assertThat(document.get("format")).isEqualTo("safetensors");
    assertThat(document.get("metadata")).isEqualTo(verdict(file).get("metadata"));
    Map<?, ?> expected = (Map<?, ?>) verdict(file).get("tensors");
    Map<?, ?> tensors = (Map<?, ?>) document.get("tensors");
    assertThat(tensors.keySet()).isEqualTo(expected.keySet());
    byte[] bytes = Files.readAllBytes(CORPUS.resolve(file));
    for (Map.Entry<?, ?> entry : tensors.entrySet()) {
      Map<?, ?> tensor = (Map<?, ?>) entry.getValue();
      Map<?, ?> reference = (Map<?, ?>) expected.get(entry.getKey());
      assertThat(tensor.keySet().stream().map(Object::toString))
          .containsExactly("dtype", "shape", "file", "offset", "length");
      assertThat(tensor.get("dtype")).isEqualTo(reference.get("dtype"));
      assertThat(tensor.get("shape")).isEqualTo(reference.get("shape"));
      assertThat(Path.of((String) tensor.get("file"))).isEqualTo(CORPUS.resolve(file));
      // The offset counts from the file's start, so that it names the bytes of the digest.
      assertThat(sha256(bytes, (Integer) tensor.get("offset"), (Integer) tensor.get("length")))
          .isEqualTo(reference.get("sha256"));
    }
  }

  private static String sha256(byte[] bytes, int offset, int length) {
    MessageDigest sha256 = TensorDigests.sha256();
    sha256.update(bytes, offset, length);
    return HexFormat.of().formatHex(sha256.digest());
  }

  @ParameterizedTest
  @MethodSource("invalid")
  void malformedFilesAreNamedInOneLine(String file) {
    for (String command : List.of("digest", "inspect", "load")) {
      CommandLineRun run = CommandLineRun.of(command, CORPUS.resolve(file));

      assertThat(run.exitCode()).as(run.err()).isEqualTo(65);
      assertThat(run.out()).isEmpty();
      assertThat(run.err().lines()).hasSize(1);
      assertThat(run.err())
          .startsWith("gantry: " + CORPUS.resolve(file) + ": offset ")
          .matches("(?s)gantry: .*: offset [0-9]+: [a-z0-9]+(-[a-z0-9]+)*: .+\n");
    }
  }

  @ParameterizedTest
  @MethodSource("valid")
  void convertKeepsWhatTheReferenceReads(String file, @TempDir Path temporary) {
    Path single = temporary.resolve("single.safetensors");
    Path sharded = temporary.resolve("sharded");
    for (CommandLineRun run :
        List.of(
            CommandLineRun.of("convert", CORPUS.resolve(file), single),
            CommandLineRun.of("convert", "--shard-bytes", "64", single, sharded))) {
      assertThat(run.exitCode()).as(run.err()).isZero();
      assertThat(run.err()).isEmpty();
    }
    for (Path out : List.of(single, sharded)) {
      CommandLineRun digest = CommandLineRun.of("digest", "--json", out);
      assertThat(((Map<?, ?>) digest.json()).get("tensors"))
          .isEqualTo(verdict(file).get("tensors"));
      CommandLineRun inspect = CommandLineRun.of("inspect", "--json", out);
      assertThat(((Map<?, ?>) inspect.json()).get("metadata"))
          .isEqualTo(verdict(file).get("metadata"));
    }
  }

  @ParameterizedTest
  @MethodSource("invalid")
  void convertWritesNothingOfAMalformedFile(String file, @TempDir Path temporary) {
    for (String out : List.of("out", "out.safetensors")) {
      CommandLineRun run =
          CommandLineRun.of("convert", CORPUS.resolve(file), temporary.resolve(out));
      assertThat(run.exitCode()).as(run.err()).isEqualTo(65);
      assertThat(run.out()).isEmpty();
      assertThat(run.err().lines()).hasSize(1);
      assertThat(temporary).isEmptyDirectory();
    }
  }
}
