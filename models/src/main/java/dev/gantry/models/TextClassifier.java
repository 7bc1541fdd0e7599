// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.modality.Classifications;
import ai.djl.ndarray.NDArray;
import ai.djl.nn.Activation;
import ai.djl.util.StringPair;
import dev.gantry.core.MisuseException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/// Gives texts labels with probabilities. [HubModel#classifier] makes it. Thread-safe until it is closed.
///
/// The probabilities are the softmax of the scores. If `problem_type` is
/// `multi_label_classification`, or there is only one label, each probability is the sigmoid of
/// its score.
///
/// ```java
/// try (TextClassifier classifier = HubModel.of(folder).classifier()) {
///   String label = classifier.classify("good food, bad price").best().getClassName();
/// }
/// ```
public final class TextClassifier implements AutoCloseable {
  private static final String ONE = "single_label_classification";
  private static final String SEVERAL = "multi_label_classification";

  private final TextScorer scorer;

  TextClassifier(TextScorer scorer) {
    this.scorer = scorer;
  }

  static TextClassifier open(HubModel hub, TextOptions options) {
    return new TextClassifier(TextScorer.open(hub, options, (_, scored) -> probabilities(scored)));
  }

  /// Returns the function that turns scores into probabilities, by the model's `problem_type`.
  static UnaryOperator<NDArray> probabilities(HubModel hub) {
    UnaryOperator<NDArray> softmax = scores -> scores.softmax(-1);
    UnaryOperator<NDArray> sigmoid = Activation::sigmoid;
    UnaryOperator<NDArray> chosen =
        hub.config().choice("problem_type", ONE, Map.of(ONE, softmax, SEVERAL, sigmoid));
    return hub.labels().size() == 1 ? sigmoid : chosen;
  }

  /// Returns the labels of one text, with their probabilities.
  ///
  /// @throws MisuseException as [#classify(List)]
  public Classifications classify(String text) {
    return classify(List.of(MisuseException.requireGiven("text", text))).getFirst();
  }

  /// Returns the labels of each text, with their probabilities, in the order of the texts.
  ///
  /// @throws MisuseException if a text is null
  public List<Classifications> classify(List<String> texts) {
    return labelled(scorer.scoresOf(MisuseException.requireGiven("texts", texts)));
  }

  /// Returns the labels of each pair of texts, such as a premise and a hypothesis, with their
  /// probabilities, in the order of the pairs.
  ///
  /// @throws MisuseException if a text is null
  public List<Classifications> classifyPairs(List<StringPair> pairs) {
    return labelled(scorer.scores(pairs));
  }

  private List<Classifications> labelled(float[][] rows) {
    return Arrays.stream(rows).map(row -> labelled(scorer.labels(), row)).toList();
  }

  static Classifications labelled(List<String> labels, float... probabilities) {
    List<Double> wide =
        IntStream.range(0, probabilities.length).mapToObj(i -> (double) probabilities[i]).toList();
    return new Classifications(labels, wide);
  }

  /// Returns the names of the labels, in the order in which `config.json` numbers them.
  public List<String> labels() {
    return scorer.labels();
  }

  /// Frees the model's memory and the tokenizer, after the calls that have begun are finished.
  /// Later calls are refused.
  @Override
  public void close() {
    scorer.close();
  }
}
