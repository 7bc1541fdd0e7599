// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.models.internal.sampling.Sampling;
import dev.gantry.models.internal.sampling.TokenChooser;
import dev.gantry.models.spi.CausalBlock;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import java.util.random.RandomGenerator;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// Continues a text, token by token, with a model whose block is a [CausalBlock]. Immutable,
/// thread-safe.
///
/// The token with the highest score follows, unless a temperature is set. With a temperature, the
/// CPU draws the token by a seeded random generator, so that the same seed gives the same text.
public final class TextGenerator {
  private static final int MAX_TOKENS = 1 << 24;

  private final int tokens;
  private final Sampling sampling;
  private final long seed;
  private final List<Long> ends;
  private final LongConsumer listener;
  private final BooleanSupplier cancelled;

  private TextGenerator(Builder builder) {
    tokens = builder.tokens;
    sampling =
        new Sampling(
            builder.penalty, builder.temperature, builder.topK, builder.topP, builder.minP);
    seed = builder.seed;
    ends = builder.ends;
    listener = builder.listener;
    cancelled = builder.cancelled;
  }

  /// Returns a builder with the defaults that its methods name.
  public static Builder builder() {
    return new Builder();
  }

  /// Continues a text. It ends after the maximum number of tokens, after an end token, or when it
  /// is as long as the model allows.
  ///
  /// @param prompt the ids of the text's tokens, at least one
  /// @return the ids of the tokens that follow; the last may be an end token
  /// @throws MisuseException if the model's block is no [CausalBlock], or if the prompt is empty,
  ///     too long, or has an id that the model does not know
  public long[] generate(Model model, long... prompt) {
    try (TextSession session = session(model)) {
      return session.generate(prompt);
    }
  }

  /// Continues several texts in one batch, with the same result as each alone. Shorter texts are
  /// padded at the front; no token sees the padding. The batch runs until the last text has ended.
  /// The listener does not receive these tokens.
  ///
  /// @param prompts the ids of each text's tokens, at least one
  /// @return for each text, the ids of the tokens that follow
  /// @throws MisuseException as [#generate(Model, long...)]
  public List<long[]> generate(Model model, List<long[]> prompts) {
    if (MisuseException.requireGiven("prompts", prompts).isEmpty()) {
      return List.of();
    }
    int longest =
        prompts.stream()
            .mapToInt(prompt -> MisuseException.requireGiven("prompt", prompt).length)
            .max()
            .getAsInt();
    long[] padding = prompts.stream().mapToLong(prompt -> longest - prompt.length).toArray();
    List<LongStream.Builder> generated =
        Stream.generate(LongStream::builder).limit(padding.length).toList();
    try (Decoding decoding = new Decoding(model, this, padding)) {
      decoding.begin(prompts.toArray(long[][]::new));
      for (long[] next = decoding.next(); next.length > 0; next = decoding.next()) {
        for (int i = 0; i < next.length; i++) {
          if (next[i] != Decoding.NONE) {
            generated.get(i).add(next[i]);
          }
        }
      }
    }
    return generated.stream().map(each -> each.build().toArray()).toList();
  }

  /// Begins a session for a text that grows, such as a conversation. The session keeps its cache
  /// from one answer to the next.
  ///
  /// @return a session that owns the cache's memory; close it before the model
  /// @throws MisuseException if the model's block is no [CausalBlock]
  public TextSession session(Model model) {
    return new TextSession(model, this);
  }

  int tokens() {
    return tokens;
  }

  /// Gives each text its own random generator with the same seed, so that its tokens are drawn as
  /// if it were alone.
  TokenChooser chooser(int texts) {
    return new TokenChooser(
        sampling,
        Stream.<RandomGenerator>generate(() -> new SplittableRandom(seed)).limit(texts).toList());
  }

  BooleanSupplier cancelled() {
    return cancelled;
  }

  boolean isEnd(long token) {
    return ends.contains(token);
  }

  void heard(long token) {
    listener.accept(token);
  }

  /// Builds a [TextGenerator]. No option is required. Not thread-safe.
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
    private BooleanSupplier cancelled = () -> false;

    private Builder() {}

    /// Sets the maximum number of generated tokens. The default is 50.
    public Builder optMaxTokens(int most) {
      MisuseException.requireRange("optMaxTokens", most, 1, MAX_TOKENS);
      tokens = most;
      return this;
    }

    /// Sets the number by which scores are divided before a token is drawn. 1 gives the
    /// probabilities of the training; near 0, the best token is drawn nearly always. 0, the
    /// default, always takes the best token.
    public Builder optTemperature(double chosen) {
      temperature = required("optTemperature", chosen, 0, 1000);
      return this;
    }

    /// Draws from the `most` tokens with the highest scores, and those equal to the last of them.
    /// 0, the default, draws from all tokens.
    public Builder optTopK(int most) {
      MisuseException.requireRange("optTopK", most, 0, MAX_TOKENS);
      topK = most;
      return this;
    }

    /// Draws from the likeliest tokens whose probabilities add up to this number, from 0 to 1. It
    /// applies after `optTopK`. 1, the default, draws from all tokens.
    public Builder optTopP(double share) {
      topP = required("optTopP", share, 0, 1);
      return this;
    }

    /// Draws from the tokens whose probability is at least this fraction of the best token's, from
    /// 0 to 1. 0, the default, draws from all tokens.
    public Builder optMinP(double share) {
      minP = required("optMinP", share, 0, 1);
      return this;
    }

    /// Divides the scores of tokens in the prompt or the answer by this number, or multiplies them
    /// if they are negative. 1, the default, leaves them unchanged. The penalty also applies if
    /// the best token is taken.
    public Builder optRepetitionPenalty(double chosen) {
      penalty = required("optRepetitionPenalty", chosen, 0.01, 100);
      return this;
    }

    private static double required(String option, double value, double from, double to) {
      if (!(value >= from && value <= to)) {
        throw new MisuseException(
            "%s must be %s to %s (was %s)"
                .formatted(option, JsonTree.shown(from), JsonTree.shown(to), value));
      }
      return value;
    }

    /// Sets the seed of the random numbers. The default is 0.
    public Builder optSeed(long chosen) {
      seed = chosen;
      return this;
    }

    /// Sets the ids of the tokens that end a text, such as `eos_token_id` of `config.json`.
    public Builder optEnds(long... ids) {
      ends = LongStream.of(MisuseException.requireGiven("optEnds", ids)).boxed().toList();
      return this;
    }

    /// Sets a listener that receives each token as soon as it is generated.
    public Builder optListener(LongConsumer chosen) {
      MisuseException.requireGiven("optListener", chosen);
      listener = chosen;
      return this;
    }

    /// Sets a condition that is evaluated before each forward pass, which computes a token or a
    /// piece of a long prompt. Once it is true, the text ends with the tokens that it has.
    public Builder optCancel(BooleanSupplier chosen) {
      cancelled = MisuseException.requireGiven("optCancel", chosen);
      return this;
    }

    /// Returns the generator as it is set now.
    ///
    /// @throws MisuseException if tokens to draw from are chosen, and no temperature has them drawn
    public TextGenerator build() {
      if (temperature == 0 && (topK != 0 || topP != 1 || minP != 0)) {
        throw new MisuseException(
            ("optTopK (%d), optTopP (%s) and optMinP (%s) choose tokens to draw from, which needs"
                    + " optTemperature above 0 (was 0)")
                .formatted(topK, topP, minP));
      }
      return new TextGenerator(this);
    }
  }
}
