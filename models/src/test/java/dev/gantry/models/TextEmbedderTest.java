// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static dev.gantry.models.TextReference.TEXTS;
import static dev.gantry.models.TextReference.requireClose;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.offset;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Folders of sentence-transformers, against that library.
class TextEmbedderTest {
  @AfterEach
  void nothingIsLeft() {
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private static TextEmbedder embedder(String folder) {
    return HubModel.of(TEXTS.resolve(folder)).embedder();
  }

  @ParameterizedTest
  @CsvSource({
    "mean,''",
    "cls-dense,''",
    "prompts,query",
    "prompts,passage",
    "prompts,none",
    "weighted,''",
    "weighted,query"
  })
  void aFolderGivesTheVectorsOfTheLibraryThatWroteIt(String folder, String prompt)
      throws IOException {
    TextReference reference = TextReference.of(folder);
    boolean named = !prompt.equals("query") || folder.equals("weighted");
    float[][] expected = reference.vectors(named ? prompt : "");
    try (TextEmbedder embedder = embedder(folder)) {
      requireClose(embedder.embed(reference.texts(), prompt), expected);
      assertThat(embedder.dimension()).isEqualTo(expected[0].length);
    }
  }

  @Test
  void theFoldersOwnPromptIsTheDefault() throws IOException {
    TextReference reference = TextReference.of("prompts");
    try (TextEmbedder embedder = embedder("prompts")) {
      requireClose(embedder.embed(reference.texts()), reference.vectors(""));
      assertThat(embedder.prompts()).containsOnlyKeys("query", "passage", "none");
    }
    TextOptions passages = TextOptions.builder().optPrompt("passage").build();
    try (TextEmbedder embedder = HubModel.of(TEXTS.resolve("prompts")).embedder(passages)) {
      requireClose(embedder.embed(reference.texts()), reference.vectors("passage"));
    }
  }

  @ParameterizedTest
  @CsvSource({"1", "30", "70", "100000"})
  void theSizeOfBatchesChangesNoVectorAndNoOrder(int tokens) throws IOException {
    TextReference reference = TextReference.of("weighted");
    List<Integer> places = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      places.add(i % reference.texts().size());
    }
    Collections.shuffle(places, new Random(7));
    float[][] expected = reference.vectors("");
    TextOptions options = TextOptions.builder().optBatchTokens(tokens).build();
    assertThat(options.batchTokens()).isEqualTo(tokens);
    try (TextEmbedder embedder = HubModel.of(TEXTS.resolve("weighted")).embedder(options)) {
      requireClose(
          embedder.embed(places.stream().map(reference.texts()::get).toList()),
          places.stream().map(place -> expected[place]).toArray(float[][]::new));
      assertThat(embedder.embed(List.of())).isEmpty();
    }
  }

  /// The library that writes these files cuts the prompt off, too, before it counts its tokens.
  @Test
  void aPromptThatFillsAWholeTextLeavesItsLastToken() {
    TextOptions options = TextOptions.builder().optPrompt("passage").optMaxLength(8).build();
    try (TextEmbedder embedder = HubModel.of(TEXTS.resolve("prompts")).embedder(options)) {
      float[] vector = embedder.embed("a");
      float[] first = Arrays.copyOf(vector, 16);
      for (int mode = 1; mode < 5; mode++) {
        assertThat(Arrays.copyOfRange(vector, 16 * mode, 16 * (mode + 1))).containsExactly(first);
      }
    }
  }

  @Test
  void aPoolingWithoutItsFileIsRefused(@TempDir Path folder) throws IOException {
    TextReference.copy(TEXTS.resolve("cls-dense"), folder);
    Files.delete(folder.resolve("1_Pooling").resolve("config.json"));
    assertThatExceptionOfType(TransferException.class)
        .isThrownBy(() -> HubModel.of(folder).embedder())
        .withMessageContaining("1_Pooling/config.json");
  }

  @Test
  void oneModeGivesItsPartOfSeveral(@TempDir Path folder) throws IOException {
    List<String> texts = TextReference.of("mean").texts();
    TextReference.copy(TEXTS.resolve("mean"), folder);
    Files.writeString(
        folder.resolve("modules.json"),
        """
        [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
         {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
        """);
    Path pooling = folder.resolve("1_Pooling").resolve("config.json");
    float[][] both;
    Files.writeString(pooling, "{\"pooling_mode\": [\"mean\", \"max\"]}");
    try (TextEmbedder embedder = HubModel.of(folder).embedder()) {
      both = embedder.embed(texts);
    }
    for (String mode : List.of("mean", "max")) {
      Files.writeString(pooling, "{\"pooling_mode\": \"" + mode + "\"}");
      int from = mode.equals("mean") ? 0 : 32;
      try (TextEmbedder embedder = HubModel.of(folder).embedder()) {
        requireClose(
            embedder.embed(texts),
            Arrays.stream(both)
                .map(row -> Arrays.copyOfRange(row, from, from + 32))
                .toArray(float[][]::new));
      }
    }
  }

  @Test
  void threadsShareAnEmbedder() throws Exception {
    TextReference reference = TextReference.of("mean");
    try (TextEmbedder embedder = embedder("mean");
        ExecutorService threads = Executors.newFixedThreadPool(4)) {
      List<Future<float[][]>> answers = new ArrayList<>();
      for (int i = 0; i < 16; i++) {
        answers.add(threads.submit(() -> embedder.embed(reference.texts())));
      }
      for (Future<float[][]> answer : answers) {
        requireClose(answer.get(), reference.vectors(""));
      }
    }
  }

  @Test
  void closingWaitsForCallsAndRefusesLaterOnes() throws Exception {
    TextReference reference = TextReference.of("mean");
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      for (int round = 0; round < 5; round++) {
        TextEmbedder embedder = embedder("mean");
        CountDownLatch begun = new CountDownLatch(4);
        List<Future<MisuseException>> refused = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
          refused.add(threads.submit(() -> untilRefused(embedder, reference, begun)));
        }
        begun.await();
        embedder.close();
        embedder.close();
        for (Future<MisuseException> each : refused) {
          assertThat(each.get()).hasMessage("this embedder, scorer or classifier is closed");
        }
        assertThatExceptionOfType(MisuseException.class)
            .isThrownBy(() -> embedder.embed(List.of()));
      }
    }
  }

  private static MisuseException untilRefused(
      TextEmbedder embedder, TextReference reference, CountDownLatch begun) throws IOException {
    for (; ; ) {
      try {
        requireClose(embedder.embed(reference.texts()), reference.vectors(""));
      } catch (MisuseException refusal) {
        return refusal;
      }
      begun.countDown();
    }
  }

  private static Path plain(Path folder) throws IOException {
    TextReference.copy(TEXTS.resolve("mean"), folder);
    Files.delete(folder.resolve("modules.json"));
    Files.delete(folder.resolve("sentence_bert_config.json"));
    return folder;
  }

  @Test
  void aFolderWithoutModulesGivesTheMean(@TempDir Path folder) throws IOException {
    TextReference reference = TextReference.of("mean");
    try (TextEmbedder embedder = HubModel.of(plain(folder)).embedder()) {
      requireClose(embedder.embed(reference.texts()), reference.rows("plain"));
    }
  }

  @Test
  void aHeadIsLeftInTheFiles(@TempDir Path folder) throws IOException {
    Path masked = HubModelTest.HUB.resolve("bert-mlm-untied");
    TextReference.copy(masked, folder);
    Files.copy(
        HubModelTest.HUB.resolve("bert").resolve("tokenizer.json"),
        folder.resolve("tokenizer.json"));
    float[] vector;
    try (TextEmbedder embedder = HubModel.of(folder).embedder()) {
      vector = embedder.embed("a b");
    }
    TextReference.edit(folder.resolve("config.json"), "BertForMaskedLM", "BertModel");
    assertThat(HubModel.of(folder).outputs()).contains("last_hidden_state");
    assertThat(vector).hasSize(HubModel.of(folder).config().whole("hidden_size", 1, 1 << 20));
  }

  @Test
  void halfPrecisionStaysClose() throws IOException {
    TextReference reference = TextReference.of("mean");
    TextOptions options = TextOptions.builder().optDtype(DataType.BFLOAT16).build();
    float[][] expected = reference.vectors("");
    try (TextEmbedder embedder = HubModel.of(TEXTS.resolve("mean")).embedder(options)) {
      float[][] vectors = embedder.embed(reference.texts());
      for (int i = 0; i < vectors.length; i++) {
        assertThat(embedder.similarity(vectors[i], expected[i])).isGreaterThan(0.99);
      }
    }
  }

  @Test
  void aLimitOfTheOptionsCutsTextsOff() throws IOException {
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> TextOptions.builder().optMaxLength(7))
        .withMessage("optMaxLength must be 8 to 16777216 (was 7)");
    String text = TextReference.of("mean").texts().get(4);
    TextOptions options = TextOptions.builder().optMaxLength(8).build();
    try (TextEmbedder shorter = HubModel.of(TEXTS.resolve("mean")).embedder(options);
        TextEmbedder usual = embedder("mean")) {
      assertThat(usual.similarity(shorter.embed(text), usual.embed(text))).isLessThan(0.999);
      assertThat(shorter.embed("a")).containsExactly(usual.embed("a"), offset(1e-6f));
    }
  }

  @Test
  void textsOfAnyCharactersAreTaken() {
    try (TextEmbedder embedder = embedder("weighted")) {
      assertThat(embedder.embed(List.of("\uD800", "a\u0000b", "\uDC00\uD800", "🙂", "\u202E")))
          .hasDimensions(5, 16);
    }
  }

  @Test
  void similarityIsTheFoldersFunction(@TempDir Path folder) throws IOException {
    float[] first = {1, 2};
    float[] second = {3, -1};
    try (TextEmbedder embedder = embedder("prompts")) {
      assertThat(embedder.similarity(first, second)).isEqualTo(1);
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> embedder.similarity(first, new float[3]));
    }
    TextReference.copy(TEXTS.resolve("prompts"), folder);
    String word = "dot";
    for (String next : List.of("cosine", "euclidean", "manhattan")) {
      TextReference.edit(folder.resolve("config_sentence_transformers.json"), word, next);
      word = next;
      try (TextEmbedder embedder = HubModel.of(folder).embedder()) {
        double expected =
            switch (next) {
              case "cosine" -> 1 / Math.sqrt(50);
              case "euclidean" -> -Math.sqrt(13);
              default -> -5;
            };
        assertThat(embedder.similarity(first, second)).isCloseTo(expected, offset(1e-9));
      }
    }
  }

  /// The folder, the file to change, what to replace in it, by what, and words of the error.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "cls-dense|modules.json|.models.Pooling|.models.LSTM|Pooling, Dense or Normalize",
        "cls-dense|modules.json|sentence_transformers.models.Dense|my.Dense|my.Dense",
        "cls-dense|modules.json|2_Dense|../2_Dense|it must lie in the folder",
        "cls-dense|1_Pooling/config.json|\"pooling_mode_cls_token\"|\"pooling_mode_first\"|pooling_mode_first",
        "cls-dense|2_Dense/config.json|activation.Tanh|activation.Softplus|it must be one of"
            + " torch.nn:",
        "cls-dense|2_Dense/config.json|torch.nn.modules|my.own|it must be one of torch.nn:",
        "cls-dense|2_Dense/config.json|12|13|the tensors linear.weight and linear.bias do not fit",
        "cls-dense|2_Dense/config.json|\"bias\": true|\"bias\": false|do not fit",
        "cls-dense|2_Dense/config.json|\"bias\": true|\"use_residual\": true|use_residual",
        "cls-dense|0_Transformer/sentence_bert_config.json|do_lower_case|do_upper_case|do_upper_case",
        "cls-dense|0_Transformer/tokenizer_config.json|\"backend\"|\"truncation_side\": \"left\","
            + " \"backend\"|truncation_side",
        "cls-dense|0_Transformer/tokenizer.json|{|[|tokenizer.json",
        "cls-dense|0_Transformer/config.json|BertModel|GPT2LMHeadModel|BertModel",
        "cls-dense|1_Pooling/config.json|\"word_embedding_dimension\"|\"width\"|is 32; this key",
        "prompts|config_sentence_transformers.json|\"truncate_dim\"|\"cut\"|is 90; this key",
        "prompts|config_sentence_transformers.json|_name\": \"query\"|_name\": \"q\"|it must be one"
            + " of"
      })
  void whatIsNotKnownIsOneClearLine(
      String from, String file, String present, String instead, String words, @TempDir Path folder)
      throws IOException {
    TextReference.copy(TEXTS.resolve(from), folder);
    TextReference.edit(folder.resolve(file), present, instead);
    assertThatExceptionOfType(MalformedFileException.class)
        .isThrownBy(() -> HubModel.of(folder).embedder().close())
        .satisfies(
            refused -> assertThat(refused.getMessage()).contains(words).doesNotContain("\n"));
  }

  @ParameterizedTest
  @CsvSource({
    ".models.Pooling,.models.Normalize,modules.json must have a Pooling behind the Transformer",
    ".models.Dense,.models.Pooling,modules.json must have one Pooling"
  })
  void modulesInAnotherOrderAreRefused(
      String present, String instead, String words, @TempDir Path folder) throws IOException {
    TextReference.copy(TEXTS.resolve("cls-dense"), folder);
    TextReference.edit(folder.resolve("modules.json"), present, instead);
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> HubModel.of(folder).embedder().close())
        .withMessageContaining(words);
  }

  /// On a GPU, such a token would end all later work of the process.
  @Test
  void aTokenThatTheModelDoesNotKnowIsRefused(@TempDir Path folder) throws IOException {
    TextReference.copy(TEXTS.resolve("mean"), folder);
    TextReference.edit(folder.resolve("tokenizer.json"), "\"cat\": 114", "\"cat\": 160");
    try (TextEmbedder embedder = HubModel.of(folder).embedder()) {
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> embedder.embed("cat"))
          .withMessageContaining("makes the token 160; the model knows 160 tokens");
    }
  }

  @Test
  void whatIsMissingIsOneClearLine(@TempDir Path folder) throws IOException {
    TextReference.copy(TEXTS.resolve("mean"), folder);
    Files.delete(folder.resolve("tokenizer.json"));
    HubModel hub = HubModel.of(folder);
    assertThatExceptionOfType(GantryException.class)
        .isThrownBy(hub::embedder)
        .withMessageContaining("texts need a tokenizer.json");
    try (TextEmbedder embedder = embedder("mean")) {
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> embedder.embed(List.of("a"), "query"))
          .withMessageContaining("the prompt must be");
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> embedder.embed(Arrays.asList("a", null)));
    }
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> HubModel.of(TEXTS.resolve("mean")).scorer())
        .withMessageContaining("classifies sequences");
  }
}
