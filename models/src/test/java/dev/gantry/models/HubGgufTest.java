// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.djl.LoadOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A Llama of `hub`, written as GGUF by the gguf package as llama.cpp's converter does, answers as the reference
/// does. Its rotary embedding is stretched by factors in a tensor.
class HubGgufTest {
  private static final Path FILES = HubModelTest.HUB.resolveSibling("gguf");

  @TempDir Path temporary;

  @Test
  void aGgufFileAnswersAsTheReferenceDoes() throws IOException, TranslateException {
    requireAnswers(FILES.resolve("rope3.gguf"), HubModelTest.HUB.resolve("llama-rope3"));
  }

  private static void requireAnswers(Path path, Path reference)
      throws IOException, TranslateException {
    HubModel hub = HubModel.of(path);
    try (Model model = hub.load(Device.fromName(""), LoadOptions.defaults())) {
      Reference.of(reference).requireAnsweredBy(hub, model);
      hub.refresh(model, LoadOptions.defaults());
      Reference.of(reference).requireAnsweredBy(hub, model);
    }
    assertThat(hub.architecture()).isEqualTo("LlamaForCausalLM");
    assertThat(hub.endTokens()).containsExactly(2);
  }

  /// The answers are NumPy's, of the weights as the gguf package dequantises them.
  @ParameterizedTest
  @ValueSource(strings = {"q8_0", "q4_0"})
  void quantisedWeightsAnswerAsTheirValuesDo(String name) throws IOException, TranslateException {
    Path reference = Files.createDirectories(temporary.resolve("reference"));
    Files.copy(FILES.resolve(name + ".json"), reference.resolve("expected.json"));
    requireAnswers(FILES.resolve(name + ".gguf"), reference);
  }

  @Test
  void aFolderWithOneGgufFileAnswersToo() throws IOException, TranslateException {
    Path folder = Files.createDirectories(temporary.resolve("model"));
    Path reference = HubModelTest.HUB.resolve("llama-rope3");
    Files.copy(FILES.resolve("rope3.gguf"), folder.resolve("model.gguf"));
    requireAnswers(folder, reference);
    Files.copy(reference.resolve("config.json"), folder.resolve("config.json"));
    requireAnswers(folder, reference);
  }

  /// Notes of the same length take the place of those that the file has.
  @ParameterizedTest
  @CsvSource({
    "llama.vocab_size, llama.vocab_sizx, 'llama.vocab_sizx'",
    "llama.attention.value_length, llama.xxxxxxxxx.value_length, 'llama.xxxxxxxxx.value_length'",
    "llama.block_count, llama.blocks_numb, no note 'llama.block_count'",
    "layer_norm_rms_epsilon, layer_norm_rms_epsilox, no note"
        + " 'llama.attention.layer_norm_rms_epsilon'",
    "llama.context_length, llama.expert_counttt, mixtures of experts",
  })
  void aNoteThatMeansSomethingElseIsRefused(String note, String other, String reason)
      throws IOException {
    String text =
        Files.readString(FILES.resolve("rope3.gguf"), StandardCharsets.ISO_8859_1)
            .replace(note, other);
    Path file = Files.writeString(temporary.resolve("m.gguf"), text, StandardCharsets.ISO_8859_1);
    assertThatThrownBy(() -> HubModel.of(file))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining(file.toString())
        .hasMessageContaining(reason);
  }

  /// Damaged notes give another model or a fault, and nothing worse. `-Dgantry.mutations=100000` looks longer.
  @Test
  void damagedNotesAreRefusedOrRead() throws IOException {
    byte[] whole = Files.readAllBytes(FILES.resolve("rope3.gguf"));
    long seed = System.nanoTime();
    Random random = new Random(seed);
    Path file = temporary.resolve("m.gguf");
    for (int i = 0; i < Integer.getInteger("gantry.mutations", 300); i++) {
      byte[] damaged = whole.clone();
      for (int change = 0; change <= random.nextInt(3); change++) {
        damaged[random.nextInt(4500)] = (byte) random.nextInt();
      }
      Files.write(file, damaged);
      try {
        assertThat(HubModel.of(file).architecture()).isEqualTo("LlamaForCausalLM");
      } catch (MalformedFileException fault) {
        assertThat(fault.getMessage()).as("seed %d", seed).doesNotContain("\n");
      }
    }
  }

  @Test
  void anotherArchitectureIsRefused() throws IOException {
    String text =
        Files.readString(FILES.resolve("rope3.gguf"), StandardCharsets.ISO_8859_1)
            .replaceFirst("llama", "qwen2");
    Path file = Files.writeString(temporary.resolve("m.gguf"), text, StandardCharsets.ISO_8859_1);
    assertThatThrownBy(() -> HubModel.of(file))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("'general.architecture' is 'qwen2'");
  }
}
