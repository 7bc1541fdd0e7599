// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.training.ParameterStore;
import ai.djl.translate.Translator;
import dev.gantry.core.MisuseException;
import dev.gantry.models.internal.blocks.TextInputs;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.IntStream;

/// Runs texts through a model, in batches of texts of similar length, and copies the results of
/// many batches to the host at once. Thread-safe until it is closed.
public final class TextRunner implements AutoCloseable {
  /// Turns what a model returns for a batch into a row of numbers for each text.
  @FunctionalInterface
  public interface Answer {
    /// Returns further arrays that [#rows] needs beside the outputs. They are made before the
    /// pass, because a copy to a device waits for all work that is queued there.
    default NDList arrays(NDManager manager, TokenBatch batch) {
      return new NDList();
    }

    /// @param outputs the block's outputs
    /// @param arrays the result of [#arrays]
    /// @return FLOAT32 `[batch, numbers]`
    NDArray rows(NDList outputs, NDList arrays);
  }

  /// With fewer texts, starting other threads costs more than they save.
  private static final int LEAST_IN_PARALLEL = 16;

  /// The most texts whose results are copied to the host at once. DJL copies less than 2 GiB of an
  /// array, and the inputs and results of all texts of a long list need not fit on a device.
  static final int MOST_TEXTS = 16_384;

  private final Model model;
  private final TextTokenizer tokenizer;
  private final Answer answer;
  private final int batchTokens;

  /// @param batchTokens the most tokens of a pass, padding included; a single text may have more
  public TextRunner(Model model, TextTokenizer tokenizer, Answer answer, int batchTokens) {
    this.model = model;
    this.tokenizer = tokenizer;
    this.answer = answer;
    this.batchTokens = batchTokens;
  }

  public TextTokenizer tokenizer() {
    return tokenizer;
  }

  /// Computes one row of numbers for each text, in the order of the texts.
  ///
  /// @param encode tokenizes a text; several threads call it at the same time
  /// @param prompt how many tokens at the beginning of each text pooling leaves out
  /// @throws MisuseException if this is closed
  public <T> float[][] rows(List<T> texts, Function<T, Tokens> encode, int prompt) {
    return tokenizer.during(() -> computed(texts, encode, prompt));
  }

  private <T> float[][] computed(List<T> texts, Function<T, Tokens> encode, int prompt) {
    List<Tokens> tokens =
        (texts.size() < LEAST_IN_PARALLEL ? texts.stream() : texts.parallelStream())
            .map(encode)
            .toList();
    int[] order =
        IntStream.range(0, tokens.size())
            .boxed()
            .sorted(Comparator.comparingInt(i -> -tokens.get(i).length()))
            .mapToInt(i -> i)
            .toArray();
    float[][] rows = new float[order.length][];
    for (int from = 0; from < order.length; from += MOST_TEXTS) {
      int[] some = Arrays.copyOfRange(order, from, Math.min(order.length, from + MOST_TEXTS));
      compute(tokens, some, prompt, rows);
    }
    return rows;
  }

  /// Computes the rows of some texts.
  ///
  /// @param order the texts' places in `tokens` and in `rows`, those of the longest texts first
  private void compute(List<Tokens> tokens, int[] order, int prompt, float[][] rows) {
    try (NDManager manager = model.getNDManager().newSubManager()) {
      List<Pass> passes = new ArrayList<>();
      for (int from = 0; from < order.length; ) {
        int most = Math.max(1, batchTokens / tokens.get(order[from]).length());
        int to = Math.min(order.length, from + most);
        List<Tokens> batch = Arrays.stream(order, from, to).mapToObj(tokens::get).toList();
        passes.add(pass(manager, TokenBatch.of(batch, prompt)));
        from = to;
      }
      NDList results = new NDList();
      passes.forEach(pass -> results.add(rows(manager, pass)));
      NDArray all = results.size() == 1 ? results.head() : NDArrays.concat(results);
      split(all.toFloatArray(), order, rows);
    }
  }

  /// The arrays of a pass. They are copied to the device before the first pass begins, because a
  /// copy waits for the work that is queued there.
  record Pass(NDList inputs, NDList arrays) {}

  Pass pass(NDManager manager, TokenBatch batch) {
    return new Pass(batch.inputs(manager, tokenizer.padding()), answer.arrays(manager, batch));
  }

  private NDArray rows(NDManager manager, Pass pass) {
    try (NDManager scope = manager.newSubManager()) {
      pass.inputs().attach(scope);
      pass.arrays().attach(scope);
      ParameterStore parameters = new ParameterStore(scope, false);
      NDList outputs =
          TextInputs.checked(() -> model.getBlock().forward(parameters, pass.inputs(), false));
      NDArray rows = answer.rows(outputs, pass.arrays());
      rows.attach(manager);
      return rows;
    }
  }

  private static void split(float[] all, int[] order, float[][] rows) {
    int width = all.length / order.length;
    for (int i = 0; i < order.length; i++) {
      rows[order[i]] = Arrays.copyOfRange(all, i * width, (i + 1) * width);
    }
  }

  /// Returns a translator for DJL's predictors, which run the passes themselves. Closing the model
  /// frees the tokenizer.
  ///
  /// @param tokens returns the tokens of each text of an input
  /// @param prompt how many tokens at the beginning of each text pooling leaves out
  /// @param output makes the output from the rows of an input's texts
  public <I, O> Translator<I, O> translator(
      Function<I, List<Tokens>> tokens, int prompt, Function<float[][], O> output) {
    model.getNDManager().attachInternal(UUID.randomUUID().toString(), tokenizer);
    return new TextTranslator<>(this, tokens, prompt, output);
  }

  /// Returns the rows of one pass, in the order of the batch.
  float[][] rows(NDList outputs, NDList arrays) {
    NDArray all = answer.rows(outputs, arrays);
    float[][] rows = new float[(int) all.size(0)][];
    split(all.toFloatArray(), IntStream.range(0, rows.length).toArray(), rows);
    return rows;
  }

  /// Waits for the calls of [#rows] that have begun.
  @Override
  public void close() {
    tokenizer.close();
    model.close();
  }
}
