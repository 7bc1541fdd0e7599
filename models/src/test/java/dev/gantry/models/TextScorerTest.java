// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static dev.gantry.models.TextReference.TEXTS;
import static dev.gantry.models.TextReference.requireClose;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import ai.djl.modality.Classifications;
import ai.djl.ndarray.types.DataType;
import ai.djl.util.StringPair;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Cross-encoders against sentence-transformers, and classifiers against transformers.
class TextScorerTest {
  @AfterEach
  void nothingIsLeft() {
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private static Path changed(String name, Path to, String file, String present, String instead)
      throws IOException {
    TextReference.copy(TEXTS.resolve(name), to);
    TextReference.edit(to.resolve(file), present, instead);
    return to;
  }

  private static float[] first(float[][] rows) {
    float[] all = new float[rows.length];
    for (int i = 0; i < all.length; i++) {
      all[i] = rows[i][0];
    }
    return all;
  }

  @Test
  void aCrossEncoderGivesTheScoresOfTheLibrary() throws IOException {
    TextReference reference = TextReference.of("cross");
    List<StringPair> pairs = reference.pairs();
    try (TextScorer scorer = HubModel.of(TEXTS.resolve("cross")).scorer()) {
      requireClose(first(scorer.scores(pairs)), reference.row("scores"));
      String query = pairs.getFirst().getKey();
      List<String> texts =
          pairs.stream()
              .filter(pair -> pair.getKey().equals(query))
              .map(StringPair::getValue)
              .toList();
      float[] expected = Arrays.copyOf(reference.row("scores"), texts.size());
      requireClose(scorer.score(query, texts), expected);
      assertThat(scorer.score(query, List.of())).isEmpty();
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> scorer.score(query, Arrays.asList("a", null)));
    }
  }

  /// A tokenizer that cuts a pair itself makes every pair of their pieces: here, millions.
  @Test
  void ofPairsOfLongTextsOnlyTheBeginningsCount() {
    String words = "the cat sat on the mat ";
    String longer = words.repeat(20_000);
    try (TextScorer scorer = HubModel.of(TEXTS.resolve("cross")).scorer()) {
      float[] all = scorer.score(longer, List.of(longer, "a dog"));
      assertThat(all)
          .containsExactly(scorer.score(words.repeat(9), List.of(words.repeat(9), "a dog")));
    }
  }

  /// As versions 2 to 5 of the library name the function in config.json.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "\"sbert_ce_default_activation_function\": \"torch.nn.modules.linear.Identity\",",
        "\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.linear.Identity\","
            + " \"version\": \"4.1.0\"},"
      })
  void theFunctionOfTheScoresIsTheFolders(String named, @TempDir Path folder) throws IOException {
    TextReference reference = TextReference.of("cross");
    TextReference.copy(TEXTS.resolve("cross"), folder);
    Path config = folder.resolve("config.json");

    String text = Files.readString(TEXTS.resolve("cross").resolve("config.json"));
    Files.writeString(config, "{" + named + text.substring(1));
    try (TextScorer scorer = HubModel.of(folder).scorer()) {
      requireClose(first(scorer.scores(reference.pairs())), reference.row("logits"));
    }
  }

  /// As version 6 writes it.
  @Test
  void aFolderWithModulesIsACrossEncoderToo(@TempDir Path folder) throws IOException {
    TextReference reference = TextReference.of("cross");
    TextReference.copy(TEXTS.resolve("cross"), folder);
    Files.writeString(
        folder.resolve("modules.json"),
        """
        [{"idx": 0, "name": "0", "path": "",
          "type": "sentence_transformers.base.modules.transformer.Transformer"}]
        """);
    Files.writeString(
        folder.resolve("sentence_bert_config.json"),
        """
        {"transformer_task": "sequence-classification", "module_output_name": "scores",
         "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}}
        """);
    Files.writeString(
        folder.resolve("config_sentence_transformers.json"),
        """
        {"activation_fn": "torch.nn.modules.linear.Identity", "default_prompt_name": null,
         "model_type": "CrossEncoder", "prompts": {}}
        """);
    try (TextScorer scorer = HubModel.of(folder).scorer()) {
      requireClose(first(scorer.scores(reference.pairs())), reference.row("logits"));
    }
    assertThatExceptionOfType(MalformedFileException.class)
        .isThrownBy(() -> HubModel.of(folder).embedder())
        .withMessageContaining("transformer_task");
  }

  @Test
  void theFoldersPromptComesBeforeEachText(@TempDir Path folder) throws IOException {
    TextReference.copy(TEXTS.resolve("cross"), folder);
    Files.writeString(
        folder.resolve("config_sentence_transformers.json"),
        "{\"prompts\": {\"q\": \"the dog \"}, \"default_prompt_name\": \"q\"}");
    HubModel hub = HubModel.of(folder);
    TextOptions named = TextOptions.builder().optPrompt("q").build();
    List<String> texts = List.of("a cat");
    try (TextScorer plain = HubModel.of(TEXTS.resolve("cross")).scorer();
        TextScorer byName = hub.scorer(named);
        TextScorer byDefault = hub.scorer()) {
      assertThat(byDefault.score("the mat", texts))
          .isEqualTo(byName.score("the mat", texts))
          .isNotEqualTo(plain.score("the mat", texts));
    }
    // The model is closed, too, whose parameters are the file's bytes.
    TextOptions unknown =
        TextOptions.builder().optPrompt("none").optDtype(DataType.FLOAT16).build();
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> hub.scorer(unknown));
  }

  @Test
  void aModuleBehindTheTransformerIsRefused(@TempDir Path folder) throws IOException {
    TextReference.copy(TEXTS.resolve("cross"), folder);
    Files.writeString(
        folder.resolve("modules.json"),
        """
        [{"path": "", "type": "sentence_transformers.models.Transformer"},
         {"path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}]
        """);
    HubModel hub = HubModel.of(folder);
    for (ThrowingCallable open : List.<ThrowingCallable>of(hub::scorer, hub::classifier)) {
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(open)
          .withMessageContaining("modules.json must have a Transformer alone");
    }
  }

  @Test
  void aClassifierGivesTheProbabilitiesOfTheLibrary() throws IOException {
    TextReference reference = TextReference.of("classes");
    try (TextClassifier classifier = HubModel.of(TEXTS.resolve("classes")).classifier()) {
      List<Classifications> classes = classifier.classify(reference.texts());
      requireClose(rows(classes), reference.rows("softmax"));
      assertThat(classifier.labels()).containsExactly("bad", "fine", "good");
      assertThat(classes.getFirst().getClassNames()).isEqualTo(classifier.labels());
      assertThat(classifier.classify(reference.texts().getFirst()).best().getClassName())
          .isEqualTo("fine");
      assertThat(classifier.classifyPairs(List.of(new StringPair("a", "b")))).hasSize(1);
    }
  }

  @Test
  void severalLabelsHaveTheSigmoidEach(@TempDir Path folder) throws IOException {
    TextReference reference = TextReference.of("classes");
    changed("classes", folder, "config.json", "single_label", "multi_label");
    try (TextClassifier classifier = HubModel.of(folder).classifier()) {
      requireClose(rows(classifier.classify(reference.texts())), reference.rows("sigmoid"));
    }
  }

  @Test
  void oneLabelHasTheSigmoidOfItsScore() throws IOException {
    TextReference reference = TextReference.of("cross");
    try (TextClassifier classifier = HubModel.of(TEXTS.resolve("cross")).classifier()) {
      List<Classifications> classes = classifier.classifyPairs(reference.pairs());
      for (int i = 0; i < classes.size(); i++) {
        requireClose(rows(classes)[i], new float[] {reference.row("scores")[i]});
      }
    }
  }

  private static float[][] rows(List<Classifications> classes) {
    float[][] rows = new float[classes.size()][];
    for (int i = 0; i < rows.length; i++) {
      List<Double> probabilities = classes.get(i).getProbabilities();
      rows[i] = new float[probabilities.size()];
      for (int j = 0; j < rows[i].length; j++) {
        rows[i][j] = probabilities.get(j).floatValue();
      }
    }
    return rows;
  }

  @ParameterizedTest
  @CsvSource({"single_label_classification,regression", "single_label_classification,other"})
  void aProblemThatIsNoClassificationIsRefused(String present, String instead, @TempDir Path folder)
      throws IOException {
    HubModel hub = HubModel.of(changed("classes", folder, "config.json", present, instead));
    assertThatExceptionOfType(MalformedFileException.class)
        .isThrownBy(hub::classifier)
        .withMessageContaining("problem_type");
  }

  @Test
  void oneScoreNeedsOneLabel() {
    try (TextScorer scorer = HubModel.of(TEXTS.resolve("classes")).scorer()) {
      assertThat(scorer.scores(List.of(new StringPair("a", "b")))).hasDimensions(1, 3);
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> scorer.score("a", List.of("b")))
          .withMessageContaining("one label");
    }
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> HubModel.of(TEXTS.resolve("mean")).classifier())
        .withMessageContaining("classifies sequences");
  }

  @Test
  void aModelThatScoresNothingIsRefusedBeforeItsWeightsAreRead(@TempDir Path folder)
      throws IOException {
    TextReference.copy(TEXTS.resolve("mean"), folder);
    Files.delete(folder.resolve("model.safetensors"));
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> HubModel.of(folder).scorer().close())
        .withMessageContaining("classifies sequences");
  }
}
