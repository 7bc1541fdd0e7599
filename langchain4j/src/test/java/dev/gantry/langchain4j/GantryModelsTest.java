// SPDX-License-Identifier: Apache-2.0
package dev.gantry.langchain4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.offset;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextEmbedder;
import dev.gantry.models.TextOptions;
import dev.gantry.models.TextScorer;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.exception.UnsupportedFeatureException;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.embedding.request.EmbeddingInputType;
import dev.langchain4j.model.embedding.request.EmbeddingRequest;
import dev.langchain4j.model.scoring.ScoringModel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The adapters give what the embedder and the scorer give, whose answers are compared with the reference elsewhere.
class GantryModelsTest {
  private static final Path TEXTS = Path.of("..", "models", "src", "test", "resources", "texts");
  private static final List<String> ASKED =
      List.of("the cat sat", "it is sunny", "a dog runs in the park");

  @AfterEach
  void nothingIsLeft() {
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void segmentsBecomeTheVectorsOfTheEmbedder() {
    Path folder = TEXTS.resolve("mean");
    try (GantryEmbeddingModel model = GantryEmbeddingModel.of(folder);
        TextEmbedder embedder = HubModel.of(folder).embedder()) {
      EmbeddingModel used = model;
      List<TextSegment> segments =
          List.of(TextSegment.from("the cat sat"), TextSegment.from("a dog runs in the park"));
      float[][] expected = embedder.embed(segments.stream().map(TextSegment::text).toList());
      assertThat(used.embedAll(segments).content())
          .extracting(embedding -> embedding.vector())
          .containsExactly(expected[0], expected[1]);
      assertThat(used.embed("the cat sat").content().dimension()).isEqualTo(used.dimension());
      assertThat(used.dimension()).isEqualTo(32);
    }
  }

  private static EmbeddingRequest request(EmbeddingInputType type) {
    EmbeddingRequest.Builder request =
        EmbeddingRequest.builder().inputs(ASKED.toArray(String[]::new));
    return type == null ? request.build() : request.inputType(type).build();
  }

  @Test
  void theTypeOfARequestChoosesThePrompt() {
    Path folder = TEXTS.resolve("prompts");
    TextOptions passages = TextOptions.builder().optPrompt("passage").build();
    try (GantryEmbeddingModel model = GantryEmbeddingModel.of(folder);
        GantryEmbeddingModel ofPassages =
            GantryEmbeddingModel.of(HubModel.of(folder).embedder(passages));
        TextEmbedder embedder = HubModel.of(folder).embedder()) {
      assertThat(model.embed(request(EmbeddingInputType.QUERY)).embeddings().get(2).vector())
          .containsExactly(embedder.embed(ASKED, "query")[2]);
      assertThat(model.embed(request(EmbeddingInputType.DOCUMENT)).embeddings().get(2).vector())
          .containsExactly(embedder.embed(ASKED, "passage")[2]);
      assertThat(model.embed(request(null)).embeddings().get(2).vector())
          .containsExactly(embedder.embed(ASKED)[2]);
      assertThat(ofPassages.embed(request(null)).embeddings().get(2).vector())
          .containsExactly(embedder.embed(ASKED, "passage")[2]);
      assertThatExceptionOfType(UnsupportedFeatureException.class)
          .isThrownBy(() ->
              model.embed(
                  EmbeddingRequest.builder()
                      .inputs(ASKED.toArray(String[]::new))
                      .dimensions(3)
                      .build()));
    }
  }

  /// Copies a folder, and replaces a text in one of its files.
  private static Path edited(String name, String file, String old, String next, Path folder)
      throws IOException {
    Path from = TEXTS.resolve(name);
    try (Stream<Path> files = Files.walk(from)) {
      for (Path each : files.filter(Files::isRegularFile).toList()) {
        Path target = folder.resolve(from.relativize(each).toString());
        Files.createDirectories(target.getParent());
        Files.copy(each, target);
      }
    }
    Path path = folder.resolve(file);
    String text = Files.readString(path);
    assertThat(text).containsOnlyOnce(old);
    return Files.writeString(path, text.replace(old, next)).getParent();
  }

  @ParameterizedTest
  @ValueSource(strings = {"document passage corpus", "passage corpus", "corpus"})
  void aDocumentGetsTheFirstOfItsPromptsThatTheFolderHas(String names, @TempDir Path folder)
      throws IOException {
    List<String> all = List.of(names.split(" ", -1));
    // The folder names its prompts in the opposite order.
    String prompts =
        all.reversed().stream()
            .map(name -> "\"%s\": \"%s \"".formatted(name, name.charAt(0)))
            .collect(Collectors.joining(", "));
    String first = all.getFirst();
    String file = "config_sentence_transformers.json";
    Path path = edited("prompts", file, "\"passage\": \"the passage is \"", prompts, folder);
    try (GantryEmbeddingModel model = GantryEmbeddingModel.of(path);
        TextEmbedder embedder = HubModel.of(path).embedder()) {
      float[] vector =
          model.embed(request(EmbeddingInputType.DOCUMENT)).embeddings().get(2).vector();
      assertThat(vector).containsExactly(embedder.embed(ASKED, first)[2]);
      for (String other : all) {
        if (!other.equals(first)) {
          assertThat(embedder.embed(ASKED, other)[2]).isNotEqualTo(vector);
        }
      }
    }
  }

  @Test
  void aFolderWhoseTokensTheModelDoesNotKnowIsRefused(@TempDir Path folder) throws IOException {
    Path path = edited("mean", "tokenizer.json", "\"a\": 5,", "\"a\": 160,", folder);
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> GantryEmbeddingModel.of(path))
        .withMessageContaining("makes the token 160; the model knows 160 tokens");
  }

  @Test
  void aClosedAdapterHasClosedItsModel() {
    TextEmbedder embedder = HubModel.of(TEXTS.resolve("mean")).embedder();
    GantryEmbeddingModel closed = GantryEmbeddingModel.of(embedder);
    closed.close();
    assertThat(closed.dimension()).isEqualTo(32);
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> embedder.embed(ASKED));
    TextScorer scorer = HubModel.of(TEXTS.resolve("cross")).scorer();
    GantryScoringModel.of(scorer).close();
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> scorer.score("what is a vector", ASKED));
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> GantryEmbeddingModel.of((TextEmbedder) null))
        .withMessageContaining("embedder");
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> GantryScoringModel.of((TextScorer) null))
        .withMessageContaining("scorer");
  }

  @Test
  void segmentsGetTheScoresOfTheScorer() {
    Path folder = TEXTS.resolve("cross");
    try (GantryScoringModel model = GantryScoringModel.of(folder);
        TextScorer scorer = HubModel.of(folder).scorer()) {
      ScoringModel used = model;
      float[] expected = scorer.score("what is a vector", ASKED.subList(0, 2));
      assertThat(expected[0]).isNotEqualTo(expected[1]);
      assertThat(
              used.scoreAll(
                      ASKED.subList(0, 2).stream().map(TextSegment::from).toList(),
                      "what is a vector")
                  .content())
          .containsExactly((double) expected[0], (double) expected[1]);
      assertThat(used.score(ASKED.getFirst(), "what is a vector").content())
          // One text alone may be rounded otherwise than in a batch.
          .isCloseTo(expected[0], offset(1e-6));
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> used.scoreAll(null, "what is a vector"))
          .withMessage("segments must be given (was null)");
      assertThatExceptionOfType(MisuseException.class)
          .isThrownBy(() -> used.scoreAll(Collections.singletonList(null), "what is a vector"))
          .withMessage("segment must be given (was null)");
    }
  }
}
