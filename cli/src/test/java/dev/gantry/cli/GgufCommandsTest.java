// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Runs commands on GGUF files.
@ExtendWith(NoLeaks.class)
class GgufCommandsTest {
  private static final Path CORPUS = Path.of("..", "formats", "src", "test", "resources", "corpus");
  private static final Path MODELS = Path.of("..", "models", "src", "test", "resources");

  @TempDir private Path temporary;

  private static Map<?, ?> map(Object of, String member) {
    return (Map<?, ?>) ((Map<?, ?>) of).get(member);
  }

  /// Returns the verdicts of Python's gguf package on the tensors of a file.
  private static Map<?, ?> verdicts(Path file) {
    return map(map(JsonTree.verdicts(file.getParent()), file.getFileName().toString()), "tensors");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"gguf/every-type.gguf", "gguf/metadata.gguf", "gguf-types/quantised.gguf"})
  void digestsAreTheReferencesOfBlocksAndOfValues(String name) {
    Path file = CORPUS.resolve(name);
    Map<?, ?> raw =
        map(
            TestSamples.json(TestSamples.run("digest", "--json", "--device", "host", file)),
            "tensors");
    Map<?, ?> values =
        map(
            TestSamples.json(
                TestSamples.run("digest", "--as", "F32", "--json", "--device", "host", file)),
            "tensors");
    Map<?, ?> shown = map(TestSamples.json(TestSamples.run("inspect", "--json", file)), "tensors");
    Map<?, ?> verdicts = verdicts(file);
    assertThat(raw.keySet()).isEqualTo(verdicts.keySet());
    assertThat(values.keySet()).isEqualTo(verdicts.keySet());
    verdicts.forEach((tensor, right) -> {
      Map<?, ?> verdict = (Map<?, ?>) right;
      assertThat(((Map<?, ?>) raw.get(tensor)).get("sha256")).isEqualTo(verdict.get("raw_sha256"));
      assertThat(((Map<?, ?>) values.get(tensor)).get("sha256"))
          .as(tensor.toString())
          .isEqualTo(verdict.get("float32_sha256"));
      assertThat(((Map<?, ?>) shown.get(tensor)).get("dtype")).isEqualTo(verdict.get("type"));
      assertThat(((Map<?, ?>) shown.get(tensor)).get("shape")).isEqualTo(verdict.get("shape"));
    });
  }

  @Test
  void valuesAreUnderTheHubsNames() {
    Path file = MODELS.resolve("gguf/rope3.gguf");
    Map<?, ?> values =
        map(
            TestSamples.json(
                TestSamples.run("digest", "--as", "F32", "--json", "--device", "host", file)),
            "tensors");
    Map<?, ?> hub =
        map(
            TestSamples.json(
                TestSamples.run(
                    "digest",
                    "--as",
                    "F32",
                    "--json",
                    "--device",
                    "host",
                    MODELS.resolve("hub/llama-rope3"))),
            "tensors");
    assertThat(values).hasSize(hub.size() + 1);
    hub.forEach((name, digest) -> assertThat((Object) values.get(name)).isEqualTo(digest));
  }

  @Test
  void aModelIsConvertedAndLoaded() {
    Path file = MODELS.resolve("gguf/rope3.gguf");
    Path made = temporary.resolve("made.safetensors");
    var _ = TestSamples.run("convert", file, made);
    Map<?, ?> before = map(TestSamples.json(TestSamples.run("digest", "--json", file)), "tensors");
    Map<?, ?> after = map(TestSamples.json(TestSamples.run("digest", "--json", made)), "tensors");
    assertThat(after).isEqualTo(before);
    assertThat(TestSamples.run("load", "--device", "host", file).out()).contains("host");
  }

  @Test
  void aGgufFileAnswers() {
    Path file = MODELS.resolve("gguf/rope3.gguf");
    Path reference = MODELS.resolve("hub/llama-rope3");
    CommandLineRun run =
        TestSamples.run(
            "answer",
            file,
            "--input",
            reference.resolve("expected.json"),
            "--json",
            "--device",
            "host");
    List<?> logits = (List<?>) map(map(TestSamples.json(run), "outputs"), "logits").get("values");
    List<?> right =
        (List<?>) map(map(JsonTree.verdicts(reference), "outputs"), "logits").get("values");
    assertThat(logits).hasSameSizeAs(right);
    for (int i = 0; i < logits.size(); i++) {
      assertThat(((Number) logits.get(i)).doubleValue())
          .isCloseTo(
              ((Number) right.get(i)).doubleValue(), org.assertj.core.api.Assertions.within(2e-4));
    }
  }

  @Test
  void damagedFilesAreRefusedInOneLine() {
    JsonTree.verdicts(CORPUS.resolve("gguf"))
        .forEach((name, verdict) -> {
          if (Boolean.FALSE.equals(((Map<?, ?>) verdict).get("valid"))) {
            Path file = CORPUS.resolve("gguf").resolve(name.toString());
            CommandLineRun run = TestSamples.fail(65, "inspect", file);
            assertThat(run.out()).isEmpty();
            assertThat(run.err().strip()).contains(file + ": offset ").hasLineCount(1);
          }
        });
  }
}
