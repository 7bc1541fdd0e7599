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
/// The token of the highest score follows, unless there is a temperature: then a token is drawn, by
/// the CPU and a seed, so that the same seed gives the same text.
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
    try (TextSession session = session(model)) {
      return session.generate(prompt);
    }
  }

  /// Continues several texts together, each as if it were alone: shorter ones have padding before them, which no token
  /// sees. They go on until the last one has ended. The listener does not hear of their tokens.
  ///
  /// @param prompts the ids of each text's tokens so far, one or more
  /// @return for each text, the ids of those that follow
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

  /// Begins a text that grows, such as a conversation, with a cache that is kept from one answer to the next.
  ///
  /// @return a session that owns the cache's memory until you close it, before the model
  /// @throws MisuseException if the model's block is no [CausalBlock]
  public TextSession session(Model model) {
    return new TextSession(model, this);
  }

  int tokens() {
    return tokens;
  }

  /// Each text has random numbers of its own, by the same seed, so that it is drawn as if it were alone.
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
    private BooleanSupplier cancelled = () -> false;

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
            "%s must be %s to %s (was %s)"
                .formatted(option, JsonTree.shown(from), JsonTree.shown(to), value));
      }
      return value;
    }

    /// The seed of the random numbers; 0 unless you say otherwise.
    public Builder optSeed(long chosen) {
      seed = chosen;
      return this;
    }

    /// Tokens that end the text, such as `eos_token_id` of `config.json`.
    public Builder optEnds(long... ids) {
      ends = LongStream.of(MisuseException.requireGiven("optEnds", ids)).boxed().toList();
      return this;
    }

    /// Sets a listener that is told each token as soon as it is generated.
    public Builder optListener(LongConsumer chosen) {
      MisuseException.requireGiven("optListener", chosen);
      listener = chosen;
      return this;
    }

    /// Sets what is asked before each pass through the model, from which a token or a piece of a long prompt comes: once
    /// it says true, the text ends with the tokens that it has.
    public Builder optCancel(BooleanSupplier chosen) {
      cancelled = MisuseException.requireGiven("optCancel", chosen);
      return this;
    }

    /// The generator as it is set now.
    public TextGenerator build() {
      return new TextGenerator(this);
    }
  }
}
