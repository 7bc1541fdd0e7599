// SPDX-License-Identifier: Apache-2.0
package dev.gantry.langchain4j;

import static org.assertj.core.api.Assertions.assertThat;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.scoring.ScoringModel;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/// A search in two steps, as the page about embeddings shows it.
class SearchTest {
  private static final Path TEXTS = Path.of("..", "models", "src", "test", "resources", "texts");

  @Test
  void textsAreFoundByVectorsAndThenByScores() {
    Path embedder = TEXTS.resolve("mean");
    Path reranker = TEXTS.resolve("cross");
    List<TextSegment> segments =
        List.of(TextSegment.from("the cat sat on the mat"), TextSegment.from("the weather"));
    try (GantryEmbeddingModel embeddings = GantryEmbeddingModel.of(embedder);
        GantryScoringModel scores = GantryScoringModel.of(reranker)) {
      assertThat(search(embeddings, scores, segments, "weather")).hasSize(2);
    }
  }

  private static List<Double> search(
      EmbeddingModel embeddings, ScoringModel scores, List<TextSegment> segments, String query) {
    List<Embedding> vectors = embeddings.embedAll(segments).content();
    assertThat(vectors).hasSize(segments.size());
    return scores.scoreAll(segments, query).content();
  }
}
