// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.translate.Translator;
import ai.djl.util.StringPair;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.models.internal.texts.TextRunner;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/// Scores pairs of texts with a cross-encoder, such as how well texts answer a query. [HubModel#scorer] makes it.
/// Thread-safe until it is closed.
///
/// ```java
/// try (TextScorer scorer = HubModel.of(folder).scorer()) {
///   float[] scores = scorer.score("what is a vector", List.of("An arrow.", "A cat."));
/// }
/// ```
public final class TextScorer implements AutoCloseable {
  /// The suffix of the architectures that score texts.
  static final String SUFFIX = "ForSequenceClassification";

  private final HubModel hub;
  private final TextRunner runner;
  private final String prompt;

  private TextScorer(HubModel hub, TextRunner runner, String prompt) {
    this.hub = hub;
    this.runner = runner;
    this.prompt = prompt;
  }

  static TextScorer open(HubModel hub, TextOptions options) {
    return open(hub, options, SentenceFolder::scores);
  }

  /// @param function the function that the folder says to apply to the scores
  static TextScorer open(
      HubModel hub,
      TextOptions options,
      BiFunction<SentenceFolder, HubModel, UnaryOperator<NDArray>> function) {
    requireScores(hub);
    Model model = hub.load(options.device(), options.load(false));
    return Cleanup.orUndo(() -> over(hub, model, options, function), model::close);
  }

  /// @param model the loaded model; closing the scorer closes it
  static TextScorer over(
      HubModel hub,
      Model model,
      TextOptions options,
      BiFunction<SentenceFolder, HubModel, UnaryOperator<NDArray>> by) {
    requireScores(hub);
    SentenceFolder folder = SentenceFolder.read(hub.root(), "sequence-classification", "logits");
    folder.requireNoModules();
    String prompt = folder.prompt(options.prompt().orElse(folder.defaultPrompt()));
    UnaryOperator<NDArray> function = by.apply(folder, hub);
    TextRunner runner =
        new TextRunner(
            model,
            folder.tokenizer(hub, model.getBlock(), options),
            (outputs, _) -> function.apply(outputs.head().toType(DataType.FLOAT32, false)),
            options.batchTokens());
    return new TextScorer(hub, runner, prompt);
  }

  private static void requireScores(HubModel hub) {
    if (!hub.architecture().endsWith(SUFFIX)) {
      throw new MisuseException(
          "scores of texts need a model that classifies sequences (is " + hub.architecture() + ")");
    }
  }

  /// Returns a translator of pairs for DJL. Closing the model frees the tokenizer.
  ///
  /// @param output makes the output from the scores of a pair
  <O> Translator<StringPair, O> ofPairs(Function<float[], O> output) {
    return runner.translator(
        pair -> List.of(runner.tokenizer().encode(prompt, pair)), 0, rows -> output.apply(rows[0]));
  }

  /// Returns a translator of single texts for DJL, as [#ofPairs] does for pairs.
  <O> Translator<String, O> ofTexts(Function<float[], O> output) {
    return runner.translator(
        text -> List.of(runner.tokenizer().encode(prompt, text)), 0, rows -> output.apply(rows[0]));
  }

  /// Scores texts against a query. The scores are in the order of the texts; a higher score is a
  /// better match. Each score is the result of the function that the folder names, or else of the
  /// sigmoid.
  ///
  /// @throws MisuseException if a text is null, or the model has several labels: then use
  ///     [#scores]
  public float[] score(String query, List<String> texts) {
    MisuseException.requireGiven("query", query);
    MisuseException.requireGiven("texts", texts);
    if (hub.labels().size() != 1) {
      throw new MisuseException(
          "one score for each text needs a model of one label (has " + hub.labels().size() + ")");
    }
    float[][] rows = scores(texts.stream().map(text -> new StringPair(query, text)).toList());
    float[] scores = new float[rows.length];
    for (int i = 0; i < rows.length; i++) {
      scores[i] = rows[i][0];
    }
    return scores;
  }

  /// Scores pairs of texts. The result has one row for each pair, with one number for each label.
  ///
  /// @throws MisuseException if a text is null
  public float[][] scores(List<StringPair> pairs) {
    MisuseException.requireGiven("pairs", pairs);
    return runner.rows(pairs, pair -> runner.tokenizer().encode(prompt, pair), 0);
  }

  /// Scores single texts. The result has one row for each text.
  float[][] scoresOf(List<String> texts) {
    return runner.rows(texts, text -> runner.tokenizer().encode(prompt, text), 0);
  }

  /// Returns the names of the labels, in the order of the numbers of [#scores].
  public List<String> labels() {
    return hub.labels();
  }

  /// Frees the model's memory and the tokenizer, after the calls that have begun are finished.
  /// Later calls are refused.
  @Override
  public void close() {
    runner.close();
  }
}
