// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.translate.Translator;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.models.internal.texts.Pooling;
import dev.gantry.models.internal.texts.TextRunner;
import dev.gantry.models.internal.texts.TextTokenizer;
import dev.gantry.models.internal.texts.TokenBatch;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/// Turns texts into vectors, as sentence-transformers does with the same folder. [HubModel#embedder] makes it.
/// Thread-safe until it is closed.
///
/// ```java
/// try (TextEmbedder embedder = HubModel.of(folder).embedder()) {
///   float[][] vectors = embedder.embed(List.of("The weather is lovely.", "It is sunny."));
///   double alike = embedder.similarity(vectors[0], vectors[1]);
/// }
/// ```
public final class TextEmbedder implements AutoCloseable {
  private static final String STATES = "last_hidden_state";

  private final SentenceFolder folder;
  private final SentenceFolder.Pooled pooled;
  private final TextRunner runner;
  private final String prompt;

  private TextEmbedder(
      SentenceFolder folder, SentenceFolder.Pooled pooled, TextRunner runner, String prompt) {
    this.folder = folder;
    this.pooled = pooled;
    this.runner = runner;
    this.prompt = prompt;
  }

  static TextEmbedder open(HubModel hub, TextOptions options) {
    HubModel base = hub.withoutHead();
    Model model = base.load(options.device(), options.load(true));
    return Cleanup.orUndo(() -> over(base, model, options), model::close);
  }

  /// @param model the loaded model; closing the embedder closes it
  /// @throws MisuseException if the model has no output of hidden states
  static TextEmbedder over(HubModel hub, Model model, TextOptions options) {
    if (!hub.outputs().getFirst().equals(STATES)) {
      throw new MisuseException(
          "vectors need a model whose first output is %s (%s gives %s)"
              .formatted(STATES, hub.architecture(), String.join(", ", hub.outputs())));
    }
    SentenceFolder folder = SentenceFolder.read(hub.root(), "feature-extraction", STATES);
    String prompt = options.prompt().orElse(folder.defaultPrompt());
    folder.prompt(prompt);
    List<String> classes = hub.config().words("architectures");
    boolean decoder = !classes.isEmpty() && classes.getFirst().endsWith("ForCausalLM");
    SentenceFolder.Pooled pooled = folder.pooled(decoder);
    List<UnaryOperator<NDArray>> steps = folder.steps(model.getNDManager());
    TextTokenizer tokenizer = folder.tokenizer(hub, model.getBlock(), options);
    TextRunner runner =
        new TextRunner(model, tokenizer, new Vectors(pooled.modes(), steps), options.batchTokens());
    return new TextEmbedder(folder, pooled, runner, prompt);
  }

  private record Vectors(List<Pooling> modes, List<UnaryOperator<NDArray>> steps)
      implements TextRunner.Answer {
    @Override
    public NDList arrays(NDManager manager, TokenBatch batch) {
      return Pooling.arrays(manager, modes, batch);
    }

    @Override
    public NDArray rows(NDList outputs, NDList arrays) {
      NDArray states = outputs.head().toType(DataType.FLOAT32, false);
      NDArray vectors = Pooling.pooled(states, modes, arrays);
      for (UnaryOperator<NDArray> step : steps) {
        vectors = step.apply(vectors);
      }
      return vectors;
    }
  }

  /// Returns a translator for DJL, with the default prompt. Closing the model frees the tokenizer.
  ///
  /// @param texts returns the texts of an input
  /// @param output makes the output from the vectors of these texts
  <I, O> Translator<I, O> ofTexts(Function<I, List<String>> texts, Function<float[][], O> output) {
    String before = folder.prompt(prompt);
    TextTokenizer tokenizer = runner.tokenizer();
    return runner.translator(
        input -> texts.apply(input).stream().map(text -> tokenizer.encode(before, text)).toList(),
        promptTokens(before),
        output);
  }

  /// Returns the vector of one text.
  ///
  /// @throws MisuseException as [#embed(List)]
  public float[] embed(String text) {
    return embed(List.of(MisuseException.requireGiven("text", text)))[0];
  }

  /// Returns one vector for each text, in the order of the texts.
  ///
  /// @throws MisuseException if a text is null, or the tokenizer makes no token of it
  public float[][] embed(List<String> texts) {
    return embed(texts, prompt);
  }

  /// Returns one vector for each text, with a prompt such as `query` or `document` put before
  /// each.
  ///
  /// @param promptName the name of one of [#prompts]; empty for no prompt
  /// @throws MisuseException as [#embed(List)], or if there is no such prompt
  public float[][] embed(List<String> texts, String promptName) {
    MisuseException.requireGiven("texts", texts);
    String before = folder.prompt(MisuseException.requireGiven("promptName", promptName));
    TextTokenizer tokenizer = runner.tokenizer();
    return runner.rows(texts, text -> tokenizer.encode(before, text), promptTokens(before));
  }

  private int promptTokens(String before) {
    return pooled.prompt() || before.isEmpty() ? 0 : runner.tokenizer().promptLength(before);
  }

  /// Returns the texts of the folder's prompts, by their names.
  public Map<String, String> prompts() {
    return Map.copyOf(folder.prompts());
  }

  /// Returns how many numbers a vector has.
  public int dimension() {
    return embed("a").length;
  }

  /// Returns the similarity of two vectors by the function that the folder names; higher is more
  /// similar. The function is the cosine unless the folder says `dot`, `euclidean` or `manhattan`.
  /// The latter two give the negative distance.
  ///
  /// @throws MisuseException if the vectors have different lengths
  public double similarity(float[] first, float[] second) {
    MisuseException.requireGiven("first", first);
    MisuseException.requireGiven("second", second);
    if (first.length != second.length) {
      throw new MisuseException(
          "vectors must have the same length (are %d and %d)"
              .formatted(first.length, second.length));
    }
    return folder.similarity().of(first, second);
  }

  /// Frees the model's memory and the tokenizer, after the calls that have begun are finished.
  /// Later calls are refused.
  @Override
  public void close() {
    runner.close();
  }
}
