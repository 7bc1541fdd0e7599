// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import dev.gantry.models.HubModel;
import dev.gantry.models.TextScorer;
import dev.gantry.samples.Usage;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// Sorts texts by how well they answer a query.
///
/// `FOLDER` is a cross-encoder, that is, a sequence classifier with one label. It may also be a
/// name on the hub, `hf://OWNER/NAME`.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' RerankTexts.java FOLDER QUERY TEXT …
/// ```
public final class RerankTexts {
  private RerankTexts() {}

  public static void main(String[] arguments) {
    Usage.check("RerankTexts.java FOLDER QUERY TEXT …", arguments);
    String folder = arguments[0];
    String query = arguments[1];
    List<String> texts = List.of(arguments).subList(2, arguments.length);
    try (TextScorer scorer = HubModel.of(folder).scorer()) {
      float[] scores = scorer.score(query, texts);
      IntStream.range(0, scores.length)
          .boxed()
          .sorted(Comparator.comparingDouble(i -> -scores[i]))
          .forEach(i -> System.out.printf(Locale.ROOT, "%.4f %s%n", scores[i], texts.get(i)));
    }
  }
}
