// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs commands on files for which NumPy gave the verdicts.
class NumpyCorpusTest {
  private static final Path CORPUS =
      Path.of("..", "formats", "src", "test", "resources", "corpus", "numpy");

  private static final Map<?, ?> VERDICTS = JsonTree.verdicts(CORPUS);

  private static boolean isValid(Object file) {
    return (Boolean) ((Map<?, ?>) VERDICTS.get(file)).get("valid");
  }

  static Stream<?> valid() {
    return VERDICTS.keySet().stream().filter(NumpyCorpusTest::isValid);
  }

  static Stream<?> invalid() {
    return VERDICTS.keySet().stream().filter(file -> !isValid(file));
  }

  /// Returns the expected tensors by name. A `.npy` file holds one array without a name, so its
  /// tensor has the name of the file.
  private static Map<String, Object> expected(String file) {
    Map<?, ?> arrays = (Map<?, ?>) ((Map<?, ?>) VERDICTS.get(file)).get("arrays");
    Map<String, Object> tensors = new LinkedHashMap<>();
    arrays.forEach((name, array) ->
        tensors.put(name.equals("") ? file.replace(".npy", "") : (String) name, array));
    return tensors;
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
  @MethodSource("valid")
  void inspectHasTheShapeThatItHasForSafetensors(String file) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("inspect", "--json", CORPUS.resolve(file)));
    assertThat(document.get("format")).isEqualTo(file.substring(file.lastIndexOf('.') + 1));
    assertThat(document.get("metadata")).isEqualTo(Map.of());
    Map<?, ?> tensors = (Map<?, ?>) document.get("tensors");
    assertThat(tensors.keySet()).isEqualTo(expected(file).keySet());
    expected(file)
        .forEach((name, array) -> {
          Map<?, ?> tensor = (Map<?, ?>) tensors.get(name);
          Map<?, ?> reference = (Map<?, ?>) array;
          assertThat(tensor.keySet().stream().map(Object::toString))
              .containsExactly("dtype", "shape", "file", "offset", "length");
          assertThat(tensor.get("dtype")).isEqualTo(reference.get("dtype"));
          assertThat(tensor.get("shape")).isEqualTo(reference.get("shape"));
        });
  }

  @ParameterizedTest
  @MethodSource("valid")
  void convertWritesSafetensorsOfTheSameTensors(String file, @TempDir Path temporary) {
    Path single = temporary.resolve("single.safetensors");
    Path folder = temporary.resolve("folder");
    TestSamples.run("convert", CORPUS.resolve(file), single);
    TestSamples.run("convert", "--shard-bytes", "64", CORPUS.resolve(file), folder);
    for (Path out : List.of(single, folder)) {
      assertThat(digest(out)).isEqualTo(expected(file));
    }
  }

  @ParameterizedTest
  @MethodSource("valid")
  void loadTellsOneRun(String file) {
    assertThat(TestSamples.run("load", "--device", "host", CORPUS.resolve(file)).out().lines())
        .hasSize(2);
  }

  @ParameterizedTest
  @MethodSource("invalid")
  void malformedFilesAreNamedInOneLine(String file, @TempDir Path temporary) {
    for (CommandLineRun run :
        List.of(
            TestSamples.fail(65, "digest", CORPUS.resolve(file)),
            TestSamples.fail(65, "convert", CORPUS.resolve(file), temporary.resolve("out")))) {
      assertThat(run.err()).matches("(?s)gantry: .*: offset [0-9]+: [a-z0-9]+(-[a-z0-9]+)*: .+\n");
    }
    assertThat(temporary).isEmptyDirectory();
  }
}
