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
/// New files have `rope_parameters`, older ones `rope_theta` and `rope_scaling`. If a file has both, they must say the
/// same: versions of the library that writes them read one or the other.
///
/// @param headSize of the heads that are turned
/// @param theta if the object says none
/// @param partial whether heads may be turned in part where no waves are stretched
/// @param share of a head that is turned, if the file says none
/// @param longest text, if the file says none
/// @param anew whether a text that outgrows the first training is turned anew
record Rotations(
    HubConfig config,
    int headSize,
    double theta,
    boolean partial,
    double share,
    int longest,
    boolean anew) {
  private static final String ORIGINAL = "original_max_position_embeddings";
  private static final String SHARE = "partial_rotary_factor";
  private static final String HEADS = "num_attention_heads";

  Rotation read() {
    List<Rotation> said =
        Stream.of("rope_scaling", "rope_parameters")
            .flatMap(key -> config.object(key).stream())
            .map(this::rotation)
            .distinct()
            .toList();
    if (said.size() > 1) {
      throw config.refuse("rope_scaling", "'rope_parameters' beside it says otherwise");
    }
    return said.isEmpty() ? rotation(HubConfig.empty()) : said.getFirst();
  }

  /// @param rope the object that describes it
  Rotation rotation(HubConfig rope) {
    double base = rope.positive("rope_theta", theta);
    String key = rope.has("type") && !rope.has("rope_type") ? "type" : "rope_type";
    Map<String, Function<HubConfig, Rotation>> known =
        Map.of(
            "default", _ -> Rotation.linear(base, partial ? size(rope) : headSize, 1),
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

  private int size(HubConfig rope) {
    double said = rope.positive(SHARE, config.positive(SHARE, share));
    if (said > 1) {
      throw (rope.has(SHARE) ? rope : config).refuse(SHARE, "it must be no more than 1");
    }
    return (int) (headSize * said);
  }

  private int longestText() {
    return config.count("max_position_embeddings", longest, Facts.MAX_POSITIONS);
  }

  /// The longest text of the first training. The configuration's own key counts before that of the object within it.
  private int original(HubConfig rope) {
    int within = rope.count(ORIGINAL, longestText(), Facts.MAX_POSITIONS);
    return originally(config).orElse(within);
  }

  /// What a configuration itself says of the longest text of the first training.
  static OptionalInt originally(HubConfig config) {
    return config.has(ORIGINAL)
        ? OptionalInt.of(config.whole(ORIGINAL, 1, Facts.MAX_POSITIONS))
        : OptionalInt.empty();
  }

  private Rotation dynamic(double base, HubConfig rope) {
    return new Rotation(
        base, size(rope), 1, new Rotation.Dynamic(rope.positive("factor"), longestText()));
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
    double factor = rope.positive("factor", longestText() / original);
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

  /// The number of the wave that turns so many times in a text of the first training.
  private static double number(double base, int size, double original, double turns) {
    return size * Math.log(original / (turns * 2 * Math.PI)) / (2 * Math.log(base));
  }

  private Rotation each(double base, HubConfig rope) {
    int size = size(rope);
    double original = original(rope);
    double factor = rope.positive("factor", longestText() / original);
    double strength = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
    return new Rotation(
        base,
        size,
        rope.positive("attention_factor", strength),
        new Rotation.Each(
            rope.factors("short_factor", size / 2),
            rope.factors("long_factor", size / 2),
            original,
            anew));
  }
}
