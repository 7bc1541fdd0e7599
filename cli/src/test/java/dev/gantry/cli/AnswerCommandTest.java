// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.testing.NoLeaks;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AnswerCommandTest {
  private static final Path HUB = Path.of("..", "models", "src", "test", "resources", "hub");

  @TempDir private Path temporary;

  @AfterEach
  void nothingIsLeft() {
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @ParameterizedTest
  @ValueSource(strings = {"bert", "gpt2", "llama", "llama-fp8", "resnet", "vit"})
  void theAnswersAreTheReferences(String name) {
    Path folder = HUB.resolve(name);
    CommandLineRun run =
        CommandLineRun.of(
            "answer",
            folder,
            "--input",
            folder.resolve("expected.json"),
            "--json",
            "--device",
            "host");

    assertThat(run.err()).isEmpty();
    assertThat(run.exitCode()).isZero();
    Map<?, ?> outputs = (Map<?, ?>) ((Map<?, ?>) run.json()).get("outputs");
    Map<?, ?> expected = (Map<?, ?>) JsonTree.verdicts(folder).get("outputs");
    assertThat(outputs.keySet()).isEqualTo(expected.keySet());
    expected.forEach((output, right) -> {
      assertThat(member(outputs.get(output), "shape")).isEqualTo(member(right, "shape"));
      List<?> values = member(outputs.get(output), "values");
      List<?> rightValues = member(right, "values");
      assertThat(values).hasSameSizeAs(rightValues);
      for (int i = 0; i < values.size(); i++) {
        assertThat(((Number) values.get(i)).doubleValue())
            .isCloseTo(((Number) rightValues.get(i)).doubleValue(), within(2e-4));
      }
    });
    Map<?, ?> load = (Map<?, ?>) ((Map<?, ?>) run.json()).get("load");
    assertThat(load.keySet()).asString().isEqualTo("[seconds, bytes, transport]");
    assertThat(((Map<?, ?>) load.get("transport")).get("host")).isEqualTo(load.get("bytes"));
  }

  private static List<?> member(Object output, String name) {
    return (List<?>) ((Map<?, ?>) output).get(name);
  }

  @Test
  void anAnswerForPeopleIsALineAnOutput() {
    Path folder = HUB.resolve("bert");
    CommandLineRun run =
        CommandLineRun.of(
            "answer", folder, "--input", folder.resolve("expected.json"), "--dtype", "bfloat16");
    assertThat(run.exitCode()).isZero();
    assertThat(run.out())
        .matches(
            "(?s)output .*\nlast_hidden_state .*\npooler_output .*\nloaded [0-9,]+ bytes in .*");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          []                                                          | not-an-object
          {"inputs": 3}                                               | invalid-inputs
          {"input": {}}                                               | missing-inputs
          {"inputs": {}} x                                            | trailing-characters
          {"inputs": {}}                                              | the input 'input_ids' is missing
          {"inputs": {"input_ids": 3}}                                | invalid-input
          {"inputs": {"input_ids": {"shape": [1, 2]}}}                | missing-field
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "int64", "values": [1]}}}        | wrong-count
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "int7", "values": [1, 2]}}}      | unknown-dtype
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "float32", "values": [1, 2]}}}   | must be int64
          {"inputs": {"input_ids": {"shape": [2], "dtype": "int64", "values": [1, 2]}}}        | must have 2 axes
          {"inputs": {"input_ids": {"shape": [1, 0], "dtype": "int64", "values": []}}}         | must have 2 axes and at least one value
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "int64", "values": [1, 205]}}}   | has the value 205.0; it must be a whole number from 0 to 204
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "int64", "values": [1, "a"]}}}   | invalid-value
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "int64", "values": [1, -1]}}}    | has the value -1.0
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "int64", "values": [1, 1.5]}}}   | has the value 1.5
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": "int64", "values": 3}}}          | invalid-values
          {"inputs": {"input_ids": {"shape": [1, 2], "dtype": 3, "values": [1, 2]}}}           | invalid-dtype
          {"inputs": {}, "inputs": {}}                                                         | 'inputs' is given twice
          {"inputs": {"a": {"shape": [1], "dtype": "int8", "values": [1]}, "a": {"shape": [1], "dtype": "int8", "values": [2]}}} | input 'a' is given twice
          {"inputs": {"input_ids": {"shape": [1, 1], "dtype": "int64", "values": [1]}, "attention_mask": {"shape": [1, 2], "dtype": "int64", "values": [1, 1]}}} | must have the shape of the other inputs
          {"inputs": {"pixels": {"shape": [1, 2], "dtype": "int64", "values": [1, 2]}}}        | there is no input 'pixels'
          """)
  void aWrongFileOfInputsIsMalformed(String text, String message) throws IOException {
    Path file = Files.writeString(temporary.resolve("input.json"), text);
    refused(65, message, "answer", HUB.resolve("bert"), "--input", file);
  }

  @Test
  void aTextThatIsTooLongIsMalformed() throws IOException {
    Path file =
        Files.writeString(
            temporary.resolve("input.json"),
            "{\"inputs\": {\"input_ids\": {\"shape\": [1, 65], \"dtype\": \"int64\", \"values\": ["
                + "0,".repeat(64)
                + "0]}}}");
    refused(65, "at most 64 tokens (has 65)", "answer", HUB.resolve("bert"), "--input", file);
  }

  @Test
  void aModelThatIsNotKnownIsMalformed() throws IOException {
    Files.writeString(temporary.resolve("config.json"), "{\"model_type\": \"mamba\"}");
    Path input = HUB.resolve("bert").resolve("expected.json");
    refused(65, "'model_type' is \"mamba\"", "answer", temporary, "--input", input);
  }

  @Test
  void tensorsThatDoNotFitAreMalformed() throws IOException {
    for (String file : List.of("model.safetensors", "config.json")) {
      Files.copy(HUB.resolve("bert").resolve(file), temporary.resolve(file));
    }
    Path config = temporary.resolve("config.json");
    Files.writeString(
        config, Files.readString(config).replace("\"vocab_size\": 205", "\"vocab_size\": 206"));
    Path input = HUB.resolve("bert").resolve("expected.json");
    refused(65, "tokens_weight", "answer", temporary, "--input", input);
  }

  @Test
  void whatIsNotThereIsNoInput() {
    Path input = HUB.resolve("bert").resolve("expected.json");
    refused(66, "ENOENT", "answer", temporary.resolve("none"), "--input", input);
    refused(66, "ENOENT", "answer", HUB.resolve("bert"), "--input", temporary.resolve("none"));
  }

  @Test
  void usageIsToldApart() {
    refused(64, "--input", "answer", HUB.resolve("bert"));
    refused(64, "--dtype", "answer", HUB, "--input", "x", "--dtype", "int4");
  }

  private static void refused(int exitCode, String message, Object... arguments) {
    CommandLineRun run = CommandLineRun.of(arguments);
    assertThat(run.err()).contains(message);
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.exitCode()).isEqualTo(exitCode);
  }

  private void copyLlama() throws IOException {
    try (Stream<Path> files = Files.list(HUB.resolve("llama"))) {
      for (Path file : files.toList()) {
        Files.copy(file, temporary.resolve(file.getFileName()));
      }
    }
  }

  @Test
  void aMessageIsAnsweredByText() throws IOException {
    copyLlama();
    Files.delete(temporary.resolve("tokenizer_config.json"));
    CommandLineRun without = CommandLineRun.of("answer", temporary, "--chat", "--message", "the");
    assertThat(without.exitCode()).isNotZero();
    assertThat(without.err()).contains("a chat needs chat_template.jinja");

    CommandLineRun run =
        CommandLineRun.of(
            "answer", HUB.resolve("llama"), "--chat", "--message", "the cat", "--device", "host");
    assertThat(run.err()).isEmpty();
    assertThat(run.exitCode()).isZero();
    assertThat(run.out()).isEqualTo("<s> <s> <s> <s>\n");
  }

  @Test
  void theLinesOfTheInputAreOneConversation() throws IOException {
    copyLlama();
    Files.writeString(
        temporary.resolve("chat_template.jinja"),
        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{"
            + " raise_exception('the roles must alternate') }}{% endif %}{{ m.content }} {% endfor"
            + " %}the");
    InputStream before = System.in;
    System.setIn(new ByteArrayInputStream("the cat\nthe dog".getBytes(StandardCharsets.UTF_8)));
    try {
      CommandLineRun run = CommandLineRun.of("answer", temporary, "--chat", "--device", "host");
      assertThat(run.err()).isEmpty();
      assertThat(run.out()).hasLineCount(2);
    } finally {
      System.setIn(before);
    }
  }

  @Test
  void optionsThatDoNotFitEachOtherAreNamed() {
    Path folder = HUB.resolve("llama");
    assertThat(CommandLineRun.of("answer", folder).err()).contains("either --input or --chat");
    assertThat(
            CommandLineRun.of(
                    "answer", folder, "--chat", "--input", folder.resolve("expected.json"))
                .err())
        .contains("either --input or --chat");
    assertThat(CommandLineRun.of("answer", folder, "--chat", "--json").err())
        .contains("--json must not be given with --chat");
    assertThat(
            CommandLineRun.of(
                    "answer", folder, "--input", folder.resolve("expected.json"), "--message", "x")
                .err())
        .contains("--message needs --chat");
  }
}
