// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Commands on objects of an S3 server: what they say of the corpora by `s3://` is what the reference
/// implementations say of the files.
@ExtendWith(NoLeaks.class)
class S3Test {
  private static final Path CORPUS = Path.of("..", "formats", "src", "test", "resources", "corpus");
  private static final S3Server SERVER = S3Server.ofProcess();

  @BeforeAll
  static void upload() throws IOException {
    for (String folder : List.of("safetensors", "numpy", "model", "tfrecord")) {
      upload(CORPUS.resolve(folder), folder);
    }
  }

  private static void upload(Path folder, String name) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        Location _ = SERVER.put(name + "/" + file.getFileName(), Files.readAllBytes(file));
      }
    }
  }

  static Stream<?> valid() {
    return CorpusTest.valid();
  }

  static Stream<?> invalid() {
    return CorpusTest.invalid();
  }

  private static Object tensorsOf(Object file) {
    return TestSamples.json(TestSamples.run("digest", "--json", "--device", "host", file))
        .get("tensors");
  }

  @ParameterizedTest
  @MethodSource("valid")
  void digestAgreesWithTheReference(String file) {
    Map<?, ?> verdict = (Map<?, ?>) JsonTree.verdicts(CORPUS.resolve("safetensors")).get(file);
    assertThat(tensorsOf(S3Server.location("safetensors/" + file)))
        .isEqualTo(verdict.get("tensors"));
  }

  @ParameterizedTest
  @MethodSource("invalid")
  void malformedObjectsAreNamedInOneLine(String file) {
    Location object = S3Server.location("safetensors/" + file);
    CommandLineRun run = TestSamples.fail(65, "digest", object);
    assertThat(run.err()).startsWith("gantry: " + object + ": offset ").hasLineCount(1);
  }

  @Test
  void aFolderOpensByItsName() {
    Object expected = tensorsOf(CORPUS.resolve("model"));
    assertThat(tensorsOf("s3://bucket/model/")).isEqualTo(expected);
    assertThat(tensorsOf("s3://bucket/model")).isEqualTo(expected);
    assertThat(tensorsOf("s3://bucket/model/model.safetensors.index.json")).isEqualTo(expected);
  }

  @Test
  void numpyComesByRangesToo() {
    for (String name : List.of("fortran.npy", "deflated.npz")) {
      assertThat(tensorsOf("s3://bucket/numpy/" + name))
          .isEqualTo(tensorsOf(CORPUS.resolve("numpy").resolve(name)));
    }
  }

  @Test
  void weightsAreInspectedLoadedAndConverted(@TempDir Path temporary) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("inspect", "--json", "s3://bucket/model"));
    assertThat(document.get("format")).isEqualTo("safetensors");
    assertThat(TestSamples.run("load", "--device", "host", "s3://bucket/model/").out())
        .contains("host");
    Path copy = temporary.resolve("copy.safetensors");
    CommandLineRun _ = TestSamples.run("convert", "s3://bucket/model/", copy);
    assertThat(tensorsOf(copy)).isEqualTo(tensorsOf(CORPUS.resolve("model")));
  }

  @Test
  void whatIsNotThereIsExitCode66() {
    for (String name : List.of("s3://bucket/none", "s3://bucket/none.safetensors", "s3://none/a")) {
      assertThat(TestSamples.fail(66, "inspect", name).err()).contains(name).hasLineCount(1);
    }
  }
}
