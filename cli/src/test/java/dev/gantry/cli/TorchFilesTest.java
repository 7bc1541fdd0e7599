// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Runs commands on files for which PyTorch gave the verdicts.
class TorchFilesTest {
  private static final Path CORPUS =
      Path.of("..", "formats", "src", "test", "resources", "corpus", "torch");

  private static final Map<?, ?> VERDICTS = JsonTree.verdicts(CORPUS);

  @TempDir private Path temporary;

  private static boolean isValid(Object file) {
    return (Boolean) ((Map<?, ?>) VERDICTS.get(file)).get("valid");
  }

  static Stream<?> valid() {
    return VERDICTS.keySet().stream().filter(TorchFilesTest::isValid);
  }

  /// Returns the files that Gantry must refuse. The verdict on `big-endian.pt` also allows
  /// swapping its bytes, as PyTorch and Gantry do.
  static Stream<?> invalid() {
    return VERDICTS.keySet().stream()
        .filter(file -> !isValid(file) && !file.equals("big-endian.pt"));
  }

  private static Object expected(String file) {
    return ((Map<?, ?>) VERDICTS.get(file)).get("tensors");
  }

  private static Object digest(Path file) {
    return TestSamples.json(TestSamples.run("digest", "--json", "--device", "host", file))
        .get("tensors");
  }

  @ParameterizedTest
  @MethodSource("valid")
  void digestAgreesWithTheReference(String file) {
    assertThat(digest(CORPUS.resolve(file))).isEqualTo(expected(file));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"training.pt", "views.pt", "legacy.pt", "tied-parameters.pt", "bare-tensor.pt"})
  void convertWritesSafetensorsOfTheSameTensors(String file) {
    Path single = temporary.resolve("single.safetensors");
    Path folder = temporary.resolve("folder");
    TestSamples.run("convert", CORPUS.resolve(file), single);
    TestSamples.run("convert", "--shard-bytes", "64", CORPUS.resolve(file), folder);
    for (Path out : List.of(single, folder)) {
      assertThat(digest(out)).isEqualTo(expected(file));
    }
  }

  @Test
  void inspectAndLoadTellWhatAFileHolds() {
    Path file = CORPUS.resolve("training.pt");
    Map<?, ?> document = TestSamples.json(TestSamples.run("inspect", "--json", file));
    assertThat(document.get("format")).isEqualTo("PyTorch");
    assertThat(((Map<?, ?>) document.get("metadata")).get("epoch")).isEqualTo("3");
    assertThat(TestSamples.run("load", "--device", "host", file).out().lines()).hasSize(2);
  }

  @ParameterizedTest
  @MethodSource("invalid")
  void malformedFilesAreNamedInOneLine(String file) {
    for (CommandLineRun run :
        List.of(
            TestSamples.fail(65, "inspect", CORPUS.resolve(file)),
            TestSamples.fail(65, "digest", CORPUS.resolve(file)),
            TestSamples.fail(65, "convert", CORPUS.resolve(file), temporary.resolve("out")))) {
      assertThat(run.err()).matches("(?s)gantry: .*: offset [0-9]+: [a-z0-9]+(-[a-z0-9]+)*: .+\n");
    }
    assertThat(temporary).isEmptyDirectory();
  }

  @ParameterizedTest
  @ValueSource(strings = {"one", "threads", "axis0-3", "axis1-2", "grid-4", "last-3", "hybrid-4"})
  void foldersOfDistributedCheckpointsAreReadAndConverted(String folder) {
    Path corpus = CORPUS.resolveSibling("dcp");
    Object expected = ((Map<?, ?>) JsonTree.verdicts(corpus).get(folder)).get("tensors");
    Path single = temporary.resolve("single.safetensors");
    TestSamples.run("convert", corpus.resolve(folder), single);
    assertThat(digest(corpus.resolve(folder))).isEqualTo(expected);
    assertThat(digest(single)).isEqualTo(expected);
    TestSamples.run("inspect", corpus.resolve(folder));
  }

  @ParameterizedTest
  @ValueSource(strings = {"torch/training.pt", "torch/every-dtype.pt", "dcp/grid-4", "dcp/one"})
  void convertWritesADistributedCheckpointOfTheSameTensors(String in) {
    Path from = CORPUS.resolveSibling(in);
    Path folder = temporary.resolve("folder");
    TestSamples.run("convert", "--to", "dcp", from, folder);
    assertThat(folder).isDirectoryContaining("glob:**/.metadata");
    assertThat(digest(folder)).isEqualTo(digest(from));
    assertThat(TestSamples.fail(64, "convert", "--to", "dcp", from, folder).err())
        .contains("OUT must be a folder without weights");
  }

  @Test
  void aFolderWithOnlyABinAnswers() throws IOException {
    Path resources = Path.of("..", "models", "src", "test", "resources");
    Path input = resources.resolve("hub/bert/expected.json");
    Files.copy(resources.resolve("hub/bert/config.json"), temporary.resolve("config.json"));
    Files.copy(
        resources.resolve("pickled/pytorch_model.bin"), temporary.resolve("pytorch_model.bin"));
    assertThat(answers(temporary, input)).isEqualTo(answers(resources.resolve("hub/bert"), input));
  }

  private static Object answers(Path folder, Path input) {
    return TestSamples.json(
            TestSamples.run("answer", folder, "--input", input, "--device", "host", "--json"))
        .get("outputs");
  }
}
