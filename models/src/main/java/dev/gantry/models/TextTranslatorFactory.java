// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.modality.Classifications;
import ai.djl.modality.Input;
import ai.djl.modality.Output;
import ai.djl.modality.nlp.translator.CrossEncoderServingTranslator;
import ai.djl.modality.nlp.translator.TextClassificationServingTranslator;
import ai.djl.modality.nlp.translator.TextEmbeddingServingTranslator;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorFactory;
import ai.djl.util.Pair;
import ai.djl.util.StringPair;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.models.internal.blocks.NamedBlock;
import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/// Makes DJL's translators of texts for a folder of the hub that `Criteria` load by the engine
/// `Gantry`. They answer as [TextEmbedder], [TextScorer] and [TextClassifier] do. `Criteria`
/// without a translator find this factory by themselves.
///
/// | input | output |
/// | --- | --- |
/// | `String` | `float[]`, a vector |
/// | `String[]` | `float[][]`, vectors |
/// | `StringPair` | `float[]`, the scores of a cross-encoder |
/// | `String`, `StringPair` | `Classifications` |
/// `Input` | `Output`, for DJL Serving: the answer that suits the model |
///
/// Arguments: `prompt` and `maxLength`, as in [TextOptions].
public final class TextTranslatorFactory implements TranslatorFactory {
  private static final Set<Pair<Type, Type>> TYPES =
      Set.of(
          new Pair<>(String.class, float[].class),
          new Pair<>(String[].class, float[][].class),
          new Pair<>(StringPair.class, float[].class),
          new Pair<>(String.class, Classifications.class),
          new Pair<>(StringPair.class, Classifications.class),
          new Pair<>(Input.class, Output.class));

  @Override
  public Set<Pair<Type, Type>> getSupportedTypes() {
    return TYPES;
  }

  /// @throws MisuseException if the model cannot give the output of these types; the model is
  ///     closed then, because no caller holds it
  @Override
  @SuppressWarnings("unchecked")
  public <I, O> Translator<I, O> newInstance(
      Class<I> input, Class<O> output, Model model, Map<String, ?> arguments) {
    return (Translator<I, O>)
        Cleanup.orUndo(() -> translator(input, output, model, arguments), model::close);
  }

  private static Translator<?, ?> translator(
      Class<?> input, Class<?> output, Model model, Map<String, ?> arguments) {
    if (!(model.getBlock() instanceof NamedBlock)) {
      throw new MisuseException(
          "translators of texts need a folder of the hub that the engine Gantry loads");
    }
    HubModel hub = HubModel.of(model.getModelPath());
    boolean scores = hub.architecture().endsWith(TextScorer.SUFFIX);
    if (output == Classifications.class || (output == Output.class && hub.labels().size() > 1)) {
      TextScorer scorer =
          TextScorer.over(
              hub, model, options(arguments), (_, scored) -> TextClassifier.probabilities(scored));
      Function<float[], Classifications> labelled =
          row -> TextClassifier.labelled(hub.labels(), row);
      Translator<String, Classifications> texts = scorer.ofTexts(labelled);
      if (input == StringPair.class) {
        return scorer.ofPairs(labelled);
      }
      return input == Input.class ? new TextClassificationServingTranslator(texts) : texts;
    }
    if (input == StringPair.class || (input == Input.class && scores)) {
      TextScorer scorer = TextScorer.over(hub, model, options(arguments), SentenceFolder::scores);
      Translator<StringPair, float[]> pairs = scorer.ofPairs(row -> row);
      return input == Input.class ? new CrossEncoderServingTranslator(pairs) : pairs;
    }
    TextEmbedder embedder = TextEmbedder.over(hub, model, options(arguments));
    if (input == String[].class) {
      return embedder.<String[], float[][]>ofTexts(
          several -> Arrays.asList(MisuseException.requireGiven("texts", several)), rows -> rows);
    }
    Translator<String, float[]> texts =
        embedder.ofTexts(Collections::singletonList, rows -> rows[0]);
    return input == Input.class ? new TextEmbeddingServingTranslator(texts) : texts;
  }

  private static TextOptions options(Map<String, ?> arguments) {
    TextOptions.Builder options = TextOptions.builder();
    Object prompt = arguments.get("prompt");
    if (prompt != null) {
      options.optPrompt(prompt.toString());
    }
    Object length = arguments.get("maxLength");
    if (length != null) {
      try {
        options.optMaxLength(Integer.parseInt(length.toString()));
      } catch (NumberFormatException _) {
        throw new MisuseException("maxLength must be a whole number (was '" + length + "')");
      }
    }
    return options.build();
  }
}
