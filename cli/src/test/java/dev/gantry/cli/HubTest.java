// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.HubServer;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Runs commands on models and datasets of a hub on the loopback. Their results must equal those
/// for the local files.
@ExtendWith(NoLeaks.class)
class HubTest {
  private static final HubServer SERVER = HubServer.ofProcess();
  private static final Path MODEL =
      Path.of("..", "models", "src", "test", "resources", "hub", "llama");
  private static final String NAME = "hf://owner/llama";

  @BeforeAll
  static void upload() {
    SERVER.put("owner/llama", MODEL);
    SERVER.put("datasets/owner/weights", MODEL);
  }

  private static Map<?, ?> json(Object... arguments) {
    return TestSamples.json(TestSamples.run(arguments));
  }

  private static Object tensors(Object weights) {
    return json("digest", "--json", "--device", "host", weights).get("tensors");
  }

  @Test
  void digestsByNameAreThoseOfTheFiles(@TempDir Path folder) {
    Object expected = tensors(MODEL);
    assertThat(tensors(NAME)).isEqualTo(expected);
    assertThat(tensors(NAME + "@" + SERVER.commit("owner/llama"))).isEqualTo(expected);
    assertThat(tensors(NAME + "/model.safetensors.index.json")).isEqualTo(expected);
    assertThat(tensors("hf://datasets/owner/weights")).isEqualTo(expected);
    Path converted = folder.resolve("one.safetensors");
    CommandLineRun _ = TestSamples.run("convert", NAME, converted);
    assertThat(tensors(converted)).isEqualTo(expected);
  }

  @Test
  void answersByNameAreThoseOfTheFolder() {
    Path input = MODEL.resolve("expected.json");
    assertThat(json("answer", "--json", "--device", "host", "--input", input, NAME).get("outputs"))
        .isEqualTo(
            json("answer", "--json", "--device", "host", "--input", input, MODEL).get("outputs"));
  }

  @Test
  void aSecondLoadIsOutOfTheCache() {
    CommandLineRun _ = TestSamples.run("load", "--device", "host", NAME);
    assertThat(TestSamples.run("load", "--device", "host", NAME).out())
        .contains("4 files from the cache");
  }

  @Test
  void whatIsMissingIsOneLine() {
    assertThat(TestSamples.fail(74, "inspect", "hf://owner/none").err())
        .hasLineCount(1)
        .contains("there is no such repository, or it is private");
    assertThat(TestSamples.fail(66, "inspect", NAME + "@v7").err())
        .hasLineCount(1)
        .contains("the repository has no revision 'v7'");
    assertThat(TestSamples.fail(64, "inspect", "hf://llama").err())
        .hasLineCount(1)
        .contains("must name owner and repository: hf://OWNER/NAME[@REVISION][/FILE]");
  }
}
