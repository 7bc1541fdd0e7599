// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/// DJL's translator of texts. All inputs of a call go through the model in one padded batch. Not
/// thread-safe: each predictor has its own.
///
/// @param <I> the type of an input, which has one text or more
/// @param tokens returns the tokens of each text of an input
/// @param prompt how many tokens at the beginning of each text pooling leaves out
/// @param output makes the output from the rows of an input's texts
record TextTranslator<I, O>(
    TextRunner runner, Function<I, List<Tokens>> tokens, int prompt, Function<float[][], O> output)
    implements Translator<I, O> {
  private static final String ARRAYS = "arrays";
  private static final String COUNTS = "counts";

  /// DJL Serving's translators call this with one text, and add the batch axis themselves.
  @Override
  public NDList processInput(TranslatorContext context, I input) {
    return each(batchProcessInput(context, List.of(input)), array -> array.squeeze(0));
  }

  @Override
  public O processOutput(TranslatorContext context, NDList outputs) {
    return batchProcessOutput(context, each(outputs, array -> array.expandDims(0))).getFirst();
  }

  private static NDList each(NDList arrays, UnaryOperator<NDArray> change) {
    return new NDList(arrays.stream().map(change).toList());
  }

  @Override
  public NDList batchProcessInput(TranslatorContext context, List<I> inputs) {
    List<Integer> counts = new ArrayList<>();
    List<Tokens> texts = new ArrayList<>();
    for (I input : inputs) {
      List<Tokens> each = runner.tokenizer().during(() -> tokens.apply(input));
      counts.add(each.size());
      texts.addAll(each);
    }
    if (texts.isEmpty()) {
      throw new MisuseException("a call must have a text or more (has none)");
    }
    TextRunner.Pass pass = runner.pass(context.getNDManager(), TokenBatch.of(texts, prompt));
    context.setAttachment(ARRAYS, pass.arrays());
    context.setAttachment(COUNTS, counts);
    return pass.inputs();
  }

  @Override
  public List<O> batchProcessOutput(TranslatorContext context, NDList outputs) {
    NDList arrays = (NDList) Objects.requireNonNull(context.getAttachment(ARRAYS));
    List<?> counts = (List<?>) Objects.requireNonNull(context.getAttachment(COUNTS));
    float[][] rows = runner.rows(outputs, arrays);
    List<O> answers = new ArrayList<>();
    int from = 0;
    for (Object count : counts) {
      int to = from + (int) count;
      answers.add(output.apply(Arrays.copyOfRange(rows, from, to)));
      from = to;
    }
    return answers;
  }
}
