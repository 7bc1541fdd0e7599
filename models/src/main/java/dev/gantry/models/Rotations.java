// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.models.internal.blocks.Rotation;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Function;
import java.util.stream.Stream;

/// Reads the rotary embedding of a `config.json`.
///
/// New files have `rope_parameters`, older files have `rope_theta` and `rope_scaling`. If a file
/// has both, they must agree, because some versions of the library that writes the files read the
/// former and some the latter.
///
/// @param stretches for each wave, a further factor that divides its frequency, as GGUF files
///     store it
record Rotations(HubConfig config, Facts facts, List<Float> stretches) {
  private static final String ORIGINAL = "original_max_position_embeddings";
  private static final String SHARE = "partial_rotary_factor";
  private static final String HEADS = "num_attention_heads";

  /// Returns the rotary embedding, which is the same for all layers.
  Rotation one() {
    Rotation read = read();
    if (facts.is("originalBeside")
        && originally().isEmpty()
        && read.kind() instanceof Rotation.Each) {
      throw config.refuse("rope_scaling", "original_max_position_embeddings must be beside it");
    }
    if (stretches.isEmpty()) {
      return read;
    }
    if (stretches.size() != read.size() / 2
        || !(read.kind() instanceof Rotation.Linear(double factor))) {
      throw config.refuse(
          "num_attention_heads",
          "a head has %d waves, and factors are for %d"
              .formatted(read.size() / 2, stretches.size()));
    }
    List<Float> factors = stretches.stream().map(each -> (float) (each * factor)).toList();
    return new Rotation(
        read.theta(), read.size(), 1, new Rotation.Each(factors, factors, 0, false));
  }

  private Rotation read() {
    List<Rotation> said =
        Stream.of("rope_scaling", "rope_parameters")
            .flatMap(key -> config.object(key).stream())
            .map(rope -> rotation(rope, "theta"))
            .distinct()
            .toList();
    if (said.size() > 1) {
      throw config.refuse("rope_scaling", "'rope_parameters' beside it says otherwise");
    }
    return said.isEmpty() ? rotation(HubConfig.empty(), "theta") : said.getFirst();
  }

  /// Returns the rotary embedding of the layers of a kind. Old files describe only that of layers
  /// that see all tokens.
  ///
  /// @param theta the name of the fact that holds the default of theta
  Rotation of(String kind, String theta) {
    HubConfig both = config.object("rope_parameters").orElseGet(HubConfig::empty);
    HubConfig old =
        facts.is("scalable") && theta.equals("theta")
            ? config.object("rope_scaling").orElseGet(HubConfig::empty)
            : HubConfig.empty();
    HubConfig said = both.object(kind).orElse(old);
    // The reference ignores `truncate` in this object, so only its default is accepted.
    said.must("truncate", "true");
    return rotation(said, theta);
  }

  /// Returns the length of the longest text in tokens. A dynamic rotary embedding allows texts
  /// longer than the configuration says.
  int longestText() {
    return facts.text("rotary").equals("one")
            && read().kind() instanceof Rotation.Dynamic(double factor, double all)
        ? (int) Math.min(Facts.MAX_POSITIONS, factor * all)
        : longest();
  }

  private int longest() {
    return facts.whole("embedding.positions.longest");
  }

  /// @param rope the object that describes the rotary embedding
  private Rotation rotation(HubConfig rope, String theta) {
    double base = rope.positive("rope_theta", facts.number(theta));
    String key = rope.has("type") && !rope.has("rope_type") ? "type" : "rope_type";
    Map<String, Function<HubConfig, Rotation>> known =
        Map.of(
            "default", _ -> Rotation.linear(base, facts.is("partial") ? size(rope) : headSize(), 1),
            "linear", scaled -> Rotation.linear(base, size(scaled), scaled.positive("factor")),
            "dynamic", scaled -> dynamic(base, scaled),
            "llama3", scaled -> byLength(base, scaled),
            "yarn", scaled -> byNumber(base, scaled),
            "longrope", scaled -> each(base, scaled),
            "su", scaled -> each(base, scaled));
    Rotation rotation = rope.choice(key, "default", known).apply(rope);
    if (rotation.size() % 2 != 0 || rotation.size() == 0) {
      throw config.refuse(
          Stream.of("head_dim", "hidden_size", HEADS).filter(config::has).findFirst().orElse(HEADS),
          "a head's size must be even for the rotary embedding (is " + rotation.size() + ")");
    }
    return rotation;
  }

  private int headSize() {
    return facts.whole("attention.size");
  }

  private int size(HubConfig rope) {
    double said = rope.positive(SHARE, config.positive(SHARE, facts.number("share")));
    if (said > 1) {
      throw (rope.has(SHARE) ? rope : config).refuse(SHARE, "it must be no more than 1");
    }
    return (int) (headSize() * said);
  }

  private int trained() {
    return config.whole("max_position_embeddings", longest(), 1, Facts.MAX_POSITIONS);
  }

  /// Returns the longest text of the first training. The configuration's own key takes precedence
  /// over that of the object `rope`.
  private int original(HubConfig rope) {
    int within = rope.whole(ORIGINAL, trained(), 1, Facts.MAX_POSITIONS);
    return originally().orElse(within);
  }

  /// Returns the longest text of the first training; empty if the configuration itself does not
  /// have it.
  private OptionalInt originally() {
    return config.has(ORIGINAL)
        ? OptionalInt.of(config.whole(ORIGINAL, 1, Facts.MAX_POSITIONS))
        : OptionalInt.empty();
  }

  private Rotation dynamic(double base, HubConfig rope) {
    return new Rotation(
        base, size(rope), 1, new Rotation.Dynamic(rope.positive("factor"), trained()));
  }

  private Rotation byLength(double base, HubConfig rope) {
    double low = rope.positive("low_freq_factor");
    double high = rope.positive("high_freq_factor");
    if (high <= low) {
      throw rope.refuse("high_freq_factor", "it must be more than low_freq_factor, " + low);
    }
    return new Rotation(
        base,
        size(rope),
        1,
        new Rotation.ByLength(rope.positive("factor"), low, high, original(rope)));
  }

  private Rotation byNumber(double base, HubConfig rope) {
    int size = size(rope);
    double original = original(rope);
    double factor = rope.positive("factor", trained() / original);
    double all = rope.positive("mscale_all_dim", 0);
    double one = rope.positive("mscale", 0);
    double strength =
        all > 0 && one > 0 ? strength(factor, one) / strength(factor, all) : strength(factor, 1);
    double low = number(base, size, original, rope.positive("beta_fast", 32));
    double high = number(base, size, original, rope.positive("beta_slow", 1));
    if (rope.flag("truncate", true)) {
      low = Math.floor(low);
      high = Math.ceil(high);
    }
    low = Math.max(low, 0);
    high = Math.min(high, size - 1);
    return new Rotation(
        base,
        size,
        rope.positive("attention_factor", strength),
        new Rotation.ByNumber(factor, low, high == low ? high + 0.001 : high));
  }

  private static double strength(double factor, double scale) {
    return factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1;
  }

  /// Returns the number of the wave that makes this many turns within a text of the first
  /// training's length.
  private static double number(double base, int size, double original, double turns) {
    return size * Math.log(original / (turns * 2 * Math.PI)) / (2 * Math.log(base));
  }

  private Rotation each(double base, HubConfig rope) {
    int size = size(rope);
    double original = original(rope);
    double factor = rope.positive("factor", trained() / original);
    double strength = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
    return new Rotation(
        base,
        size,
        rope.positive("attention_factor", strength),
        new Rotation.Each(
            rope.factors("short_factor", size / 2),
            rope.factors("long_factor", size / 2),
            original,
            facts.is("originalBeside")));
  }
}
