// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs commands on tar archives that Python wrote, with verdicts by webdataset's rules.
@ExtendWith(NoLeaks.class)
class WebDatasetCorpusTest {
  private static final Path CORPUS =
      Path.of("..", "formats", "src", "test", "resources", "corpus", "webdataset");

  private static final Map<?, ?> VERDICTS = JsonTree.verdicts(CORPUS);

  @TempDir private Path temporary;

  private static boolean isValid(Object file) {
    return (Boolean) ((Map<?, ?>) VERDICTS.get(file)).get("valid");
  }

  static Stream<?> valid() {
    return VERDICTS.keySet().stream().filter(WebDatasetCorpusTest::isValid);
  }

  static Stream<?> invalid() {
    return VERDICTS.keySet().stream().filter(file -> !isValid(file));
  }

  /// Returns the samples of a verdict, without its facts about pixels.
  private static List<Object> samples(String file) {
    List<Object> samples = new ArrayList<>();
    for (Object sample : (List<?>) ((Map<?, ?>) VERDICTS.get(file)).get("samples")) {
      Map<Object, Object> bare = new LinkedHashMap<>((Map<?, ?>) sample);
      bare.keySet().retainAll(List.of("key", "fields"));
      samples.add(bare);
    }
    return samples;
  }

  @ParameterizedTest
  @MethodSource("valid")
  void digestAgreesWithTheVerdict(String file) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("digest", "--json", CORPUS.resolve(file)));
    assertThat(document.get("samples")).isEqualTo(samples(file));
  }

  @ParameterizedTest
  @MethodSource("valid")
  void digestForPeopleNamesTheMembers(String file) {
    List<String> expected = new ArrayList<>();
    for (Object sample : samples(file)) {
      Map<?, ?> fields = (Map<?, ?>) ((Map<?, ?>) sample).get("fields");
      fields.forEach((field, sha256) ->
          expected.add(sha256 + "  " + ((Map<?, ?>) sample).get("key") + "." + field));
    }
    assertThat(TestSamples.run("digest", CORPUS.resolve(file)).out().lines())
        .containsExactlyElementsOf(expected);
  }

  @ParameterizedTest
  @MethodSource("valid")
  void inspectCountsTheSamples(String file) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("inspect", "--json", CORPUS.resolve(file)));
    assertThat(document.get("format")).isEqualTo("webdataset");
    assertThat(document.get("samples")).isEqualTo(samples(file).size());
    Map<?, ?> fields = (Map<?, ?>) document.get("fields");
    assertThat(new ArrayList<>(fields.keySet())).isEqualTo(List.of("png", "cls", "npy", "json"));
    assertThat(((Map<?, ?>) fields.get("cls")).get("samples")).isEqualTo(samples(file).size());
  }

  @ParameterizedTest
  @MethodSource("valid")
  void anArchiveIsKnownByAnyName(String file) throws IOException {
    Path copy = Files.copy(CORPUS.resolve(file), temporary.resolve("x.safetensors"));
    assertThat(TestSamples.json(TestSamples.run("digest", "--json", copy)).get("samples"))
        .isEqualTo(samples(file));
  }

  @ParameterizedTest
  @MethodSource("invalid")
  void theFaultIsNamedInOneLine(String file) {
    for (String command : List.of("digest", "inspect")) {
      CommandLineRun run = TestSamples.fail(65, command, CORPUS.resolve(file));
      assertThat(run.err()).matches("(?s)gantry: .*: offset [0-9]+: [a-z0-9]+(-[a-z0-9]+)*: .+\n");
    }
  }

  @Test
  void indexesAreBuiltAndChecked() throws IOException {
    Path file = Files.copy(CORPUS.resolve("plain.tar"), temporary.resolve("a.tar"));
    assertThat(TestSamples.fail(1, "index", "--check", file).err()).contains("does not exist");
    assertThat(TestSamples.run("index", temporary).out()).contains("12 records, 4 features");
    assertThat(TestSamples.names(temporary)).containsExactly("a.tar", "a.tar.gantry-index");
    assertThat(TestSamples.run("index", "--check", file).out()).contains("usable, 12 records");
    assertThat(TestSamples.json(TestSamples.run("digest", "--json", temporary)).get("samples"))
        .isEqualTo(samples("plain.tar"));
    TestSamples.fail(64, "index", CORPUS.resolve("gzip.tar.gz"));
    for (Object bad : invalid().toList()) {
      Path copy = Files.copy(CORPUS.resolve((String) bad), temporary.resolve((String) bad));
      TestSamples.fail(65, "index", copy);
    }
  }

  @Test
  void theArchivesOfAFolderAreOneDataset() throws IOException {
    Files.copy(CORPUS.resolve("plain.tar"), temporary.resolve("a-1.tar"));
    Files.copy(CORPUS.resolve("gzip.tar.gz"), temporary.resolve("a-2.tar.gz"));
    List<Object> both = new ArrayList<>(samples("plain.tar"));
    both.addAll(samples("gzip.tar.gz"));
    assertThat(TestSamples.json(TestSamples.run("digest", "--json", temporary)).get("samples"))
        .isEqualTo(both);
    assertThat(TestSamples.run("inspect", temporary).out())
        .startsWith("WebDataset, 2 file(s), 17 samples");
  }
}
