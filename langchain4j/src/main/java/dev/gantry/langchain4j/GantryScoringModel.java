// SPDX-License-Identifier: Apache-2.0
package dev.gantry.langchain4j;

import dev.gantry.core.MisuseException;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextScorer;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.output.Response;
import dev.langchain4j.model.scoring.ScoringModel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// A [TextScorer] as LangChain4j's `ScoringModel`. Thread-safe until it is closed, like the
/// scorer.
public final class GantryScoringModel implements ScoringModel, AutoCloseable {
  private final TextScorer scorer;

  private GantryScoringModel(TextScorer scorer) {
    this.scorer = scorer;
  }

  /// Loads a folder of the hub with the defaults of [dev.gantry.models.TextOptions].
  ///
  /// @throws dev.gantry.core.GantryException as [HubModel#scorer()]
  public static GantryScoringModel of(Path folder) {
    return of(HubModel.of(folder).scorer());
  }

  /// @param scorer the scorer; closing the model closes it
  public static GantryScoringModel of(TextScorer scorer) {
    return new GantryScoringModel(MisuseException.requireGiven("scorer", scorer));
  }

  @Override
  public Response<List<Double>> scoreAll(List<TextSegment> segments, String query) {
    List<String> texts =
        MisuseException.requireGiven("segments", segments).stream()
            .map(segment -> MisuseException.requireGiven("segment", segment).text())
            .toList();
    List<Double> scores = new ArrayList<>();
    for (float score : scorer.score(query, texts)) {
      scores.add((double) score);
    }
    return Response.from(scores);
  }

  /// Closes the scorer, which frees its memory.
  @Override
  public void close() {
    scorer.close();
  }
}
