// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.LongConsumer;
import java.util.stream.LongStream;

/// Continues a text, token by token, with a model whose block is a [CausalBlock]. Immutable,
/// thread-safe.
///
/// The token of the highest score follows, unless there is a temperature: then a token is drawn, by
/// the CPU and a seed, so that the same seed gives the same text.
public final class TextGenerator {
  private static final int MAX_TOKENS = 1 << 24;

  /// The most tokens of one pass: it holds an attention score for each of its tokens and each token before,
  /// so a long prompt goes in pieces.
  private static final int MAX_AT_ONCE = 256;

  private final int tokens;
  private final Sampling sampling;
  private final long seed;
  private final List<Long> ends;
  private final LongConsumer listener;

  private TextGenerator(Builder builder) {
    tokens = builder.tokens;
    sampling =
        new Sampling(
            builder.penalty, builder.temperature, builder.topK, builder.topP, builder.minP);
    seed = builder.seed;
    ends = builder.ends;
    listener = builder.listener;
  }

  /// A builder with the defaults that its methods name.
  public static Builder builder() {
    return new Builder();
  }

  /// Continues a text until it has enough tokens, comes to an end token, or is as long as the model
  /// can have it.
  ///
  /// @param prompt the ids of the tokens so far, one or more
  /// @return the ids of those that follow; the last one may be an end token
  /// @throws MisuseException if the model's block is no [CausalBlock], or the prompt is empty, too
  ///     long, or has an id that the model does not know
  public long[] generate(Model model, long... prompt) {
    MisuseException.requireGiven("model", model);
    if (!(model.getBlock() instanceof CausalBlock block)) {
      throw new MisuseException(
          "the model's block must be a CausalBlock, as of Llama and GPT-2 (was "
              + model.getBlock().getClass().getName()
              + ")");
    }
    check(block, prompt);
    TokenChooser chooser = new TokenChooser(sampling, List.of(new SplittableRandom(seed)));
    chooser.saw(0, prompt);
    long[] generated = new long[Math.min(tokens, block.maxPositions() - prompt.length)];
    long[] next = prompt;
    try (NDManager manager = model.getNDManager().newSubManager();
        KeyValueCache cache = new KeyValueCache(manager)) {
      ParameterStore store = new ParameterStore(manager, false);
      for (int i = 0; i < generated.length; i++) {
        generated[i] = next(block, store, manager, cache, chooser, next);
        listener.accept(generated[i]);
        chooser.saw(0, generated[i]);
        if (ends.contains(generated[i])) {
          return Arrays.copyOf(generated, i + 1);
        }
        next = new long[] {generated[i]};
      }
    }
    return generated;
  }

  private static void check(CausalBlock block, long... prompt) {
    MisuseException.requireRange(
        "number of tokens of the prompt", prompt.length, 1, block.maxPositions());
    for (long id : prompt) {
      MisuseException.requireRange("a token of the prompt", id, 0, block.vocabularySize() - 1L);
    }
  }

  private long next(
      CausalBlock block,
      ParameterStore store,
      NDManager manager,
      KeyValueCache cache,
      TokenChooser chooser,
      long... tokens) {
    int from = 0;
    for (; tokens.length - from > MAX_AT_ONCE; from += MAX_AT_ONCE) {
      try (NDManager pass = manager.newSubManager()) {
        block.nextScores(store, ids(pass, tokens, from, from + MAX_AT_ONCE), cache);
      }
    }
    try (NDManager pass = manager.newSubManager()) {
      return chooser
          .next(block.nextScores(store, ids(pass, tokens, from, tokens.length), cache))[0];
    }
  }

  private static NDArray ids(NDManager pass, long[] tokens, int from, int to) {
    return pass.create(Arrays.copyOfRange(tokens, from, to), new Shape(1, to - from));
  }

  /// Makes [TextGenerator]s; nothing is required. For one thread.
  public static final class Builder {
    private int tokens = 50;
    private double penalty = 1;
    private double temperature;
    private int topK;
    private double topP = 1;
    private double minP;
    private long seed;
    private List<Long> ends = List.of();
    private LongConsumer listener = _ -> {};

    private Builder() {}

    /// The most tokens that it generates; 50 unless you say otherwise.
    public Builder optMaxTokens(int most) {
      MisuseException.requireRange("optMaxTokens", most, 1, MAX_TOKENS);
      tokens = most;
      return this;
    }

    /// How far scores count: near 0 the best token follows nearly always, 1 is as the model was
    /// trained. 0, the default, always takes the best.
    public Builder optTemperature(double chosen) {
      temperature = required("optTemperature", chosen, 0, 1000);
      return this;
    }

    /// Draws from the `most` tokens with the highest scores, and those equal to the last of them; 0, the default, draws
    /// from all.
    public Builder optTopK(int most) {
      MisuseException.requireRange("optTopK", most, 0, MAX_TOKENS);
      topK = most;
      return this;
    }

    /// Draws from the likeliest tokens that have this share together, 0 to 1, after `optTopK`; 1, the default, draws from
    /// all.
    public Builder optTopP(double share) {
      topP = required("optTopP", share, 0, 1);
      return this;
    }

    /// Draws from tokens that are at least this share as likely as the best, 0 to 1; 0, the default, draws from all.
    public Builder optMinP(double share) {
      minP = required("optMinP", share, 0, 1);
      return this;
    }

    /// Divides the scores of tokens that the prompt or the answer has by this, and multiplies those below 0; 1, the
    /// default, leaves them. The best token is chosen after that, too.
    public Builder optRepetitionPenalty(double chosen) {
      penalty = required("optRepetitionPenalty", chosen, 0.01, 100);
      return this;
    }

    private static double required(String option, double value, double from, double to) {
      if (!(value >= from && value <= to)) {
        throw new MisuseException(
            option + " must be " + plain(from) + " to " + plain(to) + " (was " + value + ")");
      }
      return value;
    }

    private static String plain(double number) {
      return number == (long) number ? Long.toString((long) number) : Double.toString(number);
    }

    /// The seed of the random numbers; 0 unless you say otherwise.
    public Builder optSeed(long chosen) {
      seed = chosen;
      return this;
    }

    /// Tokens that end the text, such as `eos_token_id` of `config.json`.
    public Builder optEnds(long... ids) {
      ends = LongStream.of(ids).boxed().toList();
      return this;
    }

    /// Sets a listener that is told each token as soon as it is generated.
    public Builder optListener(LongConsumer chosen) {
      MisuseException.requireGiven("optListener", chosen);
      listener = chosen;
      return this;
    }

    /// The generator as it is set now.
    public TextGenerator build() {
      return new TextGenerator(this);
    }
  }
}
