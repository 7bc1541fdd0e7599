// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static dev.gantry.models.Families.MAX_HEADS;
import static dev.gantry.models.Families.MAX_LAYERS;
import static dev.gantry.models.Families.MAX_POSITIONS;
import static dev.gantry.models.Families.MAX_TOKENS;
import static dev.gantry.models.Families.WIDEST;
import static dev.gantry.models.Families.kinds;
import static dev.gantry.models.Families.twoRotations;
import static dev.gantry.models.Families.windows;

import ai.djl.ndarray.NDArray;
import dev.gantry.models.internal.blocks.Activations;
import dev.gantry.models.internal.blocks.Description.Experts;
import dev.gantry.models.internal.blocks.Description.Place;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.QueryNorm;
import dev.gantry.models.internal.blocks.Rotation;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.UnaryOperator;

/// Families whose tokens see those before them, each as what it has otherwise than another.
final class DecoderFamilies {
  /// Gemma has Llama's names and shapes of tensors, and another normalization.
  private static final Map<String, String> GEMMA =
      Map.of(
          "bos_token_id", "2",
          "eos_token_id", "1",
          "pad_token_id", "0",
          "hidden_act", "gelu_pytorch_tanh");

  private static final int MAX_EXPERTS = 1 << 12;

  private DecoderFamilies() {}

  private static void causal(Draft d) {
    d.causal = true;
    d.lastNorm = true;
    d.pool = Pool.LAST;
    d.labelBias = false;
    d.vocabulary = d.config.count("vocab_size", MAX_TOKENS);
  }

  static void gpt2(Draft d) {
    HubConfig c = d.config;
    causal(d);
    c.requireOff("add_cross_attention");
    d.width = c.count("n_embd", 768, WIDEST);
    d.heads = c.count("n_head", 12, MAX_HEADS);
    c.requireMultiple("n_embd", d.width, "n_head", d.heads);
    d.groups = d.heads;
    d.headSize = d.width / d.heads;
    d.count = c.count("n_layer", 12, MAX_LAYERS);
    d.hidden = c.count("n_inner", Math.min(WIDEST, 4 * d.width), WIDEST);
    d.epsilon = c.positive("layer_norm_epsilon", 1e-5);
    d.activation = c.choice("activation_function", "gelu_new", Activations.KNOWN);
    EncoderFamilies.biased(d, true);
    double scale = c.flag("scale_attn_weights", true) ? 1 / Math.sqrt(d.headSize) : 1;
    boolean byLayer = c.flag("scale_attn_by_inverse_layer_idx", false);
    d.scale = i -> byLayer ? scale / (i + 1) : scale;
    d.rows = c.count("n_positions", 1024, MAX_POSITIONS);
    d.longest = d.rows;
  }

  static void gptNeox(Draft d) {
    HubConfig c = d.config;
    EncoderFamilies.sizes(d);
    causal(d);
    d.epsilon = c.positive("layer_norm_eps", 1e-5);
    d.attentionBias = c.flag("attention_bias", true);
    d.outputBias = d.attentionBias;
    d.parallel = c.flag("use_parallel_residual", true);
    d.longest = c.count("max_position_embeddings", 2048, MAX_POSITIONS);
    d.usuallyTied = false;
    d.headTensor = "embed_out.weight";
    double share = c.positive("rotary_pct", 0.25);
    double theta = c.positive("rotary_emb_base", 10_000);
    d.rotate(new Rotations(c, d.headSize, theta, true, share, d.longest).read());
  }

  /// What all of Llama's kin have. Their heads are of `head_dim`, or share the width.
  ///
  /// @param headSize if the file says none; 0 if heads then share the width
  private static void llamaKin(Draft d, int groups, int headSize, int longest) {
    HubConfig c = d.config;
    causal(d);
    d.rms = true;
    d.gated = true;
    d.usuallyTied = false;
    d.width = c.count("hidden_size", WIDEST);
    d.heads = c.count("num_attention_heads", MAX_HEADS);
    boolean all = groups == 0 || c.isNull("num_key_value_heads");
    d.groups = c.count("num_key_value_heads", all ? d.heads : groups, MAX_HEADS);
    c.requireMultiple("num_attention_heads", d.heads, "num_key_value_heads", d.groups);
    boolean shared = !c.has("head_dim") && (headSize == 0 || c.isNull("head_dim"));
    if (shared) {
      c.requireMultiple("hidden_size", d.width, "num_attention_heads", d.heads);
    }
    d.headSize = c.count("head_dim", shared ? Math.max(1, d.width / d.heads) : headSize, WIDEST);
    d.count = c.count("num_hidden_layers", MAX_LAYERS);
    d.hidden = c.count("intermediate_size", WIDEST);
    d.epsilon = c.positive("rms_norm_eps", 1e-6);
    d.longest = c.count("max_position_embeddings", longest, MAX_POSITIONS);
  }

  private static void activated(Draft d) {
    d.activation = d.config.choice("hidden_act", "silu", Activations.KNOWN);
  }

  private static void attentionBias(Draft d) {
    d.attentionBias = d.config.flag("attention_bias", false);
    d.outputBias = d.attentionBias;
  }

  private static void rotated(Draft d, double theta, boolean partial) {
    rotated(d, theta, partial, 1);
  }

  private static void rotated(Draft d, double theta, boolean partial, double share) {
    double base = d.config.positive("rope_theta", theta);
    Rotation rotation = new Rotations(d.config, d.headSize, base, partial, share, d.longest).read();
    d.rotate(rotation);
    if (rotation.kind() instanceof Rotation.Dynamic(double factor, double longest)) {
      d.longest = (int) Math.min(MAX_POSITIONS, factor * longest);
    }
  }

  static void llama(Draft d) {
    if (d.config.says(GEMMA)) {
      throw d.config.refuse("model_type", "the special tokens are Gemma's: it must be 'gemma'");
    }
    d.config.requireOff("rope_interleaved");
    llamaKin(d, 0, 0, 2048);
    activated(d);
    attentionBias(d);
    d.feedForwardBias = d.config.flag("mlp_bias", false);
    rotated(d, 10_000, false);
    if (!d.folder.stretches().isEmpty()) {
      stretch(d, d.folder.stretches());
    }
  }

  /// Stretches each wave besides, as a GGUF file says.
  private static void stretch(Draft d, List<Float> by) {
    Rotation rotation = Objects.requireNonNull(d.rotation.apply(0));
    if (by.size() != rotation.size() / 2
        || !(rotation.kind() instanceof Rotation.Linear(double factor))) {
      throw d.config.refuse(
          "num_attention_heads",
          "a head has " + rotation.size() / 2 + " waves, and factors are for " + by.size());
    }
    List<Float> factors = by.stream().map(each -> (float) (each * factor)).toList();
    d.rotate(
        new Rotation(rotation.theta(), rotation.size(), 1, new Rotation.Each(factors, factors, 0)));
  }

  static void mistral(Draft d) {
    llamaKin(d, 8, 0, 131_072);
    d.config.requireOff("attention_bias");
    activated(d);
    int window = d.config.countOrNone("sliding_window", 4096, MAX_POSITIONS);
    d.window = _ -> window;
    rotated(d, 10_000, false);
  }

  static void mixtral(Draft d) {
    mistral(d);
    d.epsilon = d.config.positive("rms_norm_eps", 1e-5);
    int window = d.config.countOrNone("sliding_window", 0, MAX_POSITIONS);
    d.window = _ -> window;
    rotated(d, 1_000_000, false);
    experts(d, "num_local_experts", 8, 2, d.hidden, true, false);
  }

  private static void experts(
      Draft d, String key, int count, int chosen, int hidden, boolean normalized, boolean stacked) {
    int all = d.config.count(key, count, MAX_EXPERTS);
    int some = d.config.count("num_experts_per_tok", chosen, MAX_EXPERTS);
    if (some > all) {
      throw d.config.refuse("num_experts_per_tok", "it must be no more than " + key + ", " + all);
    }
    d.experts = new Experts(all, some, hidden, normalized, stacked);
  }

  static void qwen2(Draft d) {
    llamaKin(d, 32, 0, 32_768);
    activated(d);
    d.attentionBias = true;
    d.config.requireOff("use_mrope");
    windowsOfQwen(d);
    rotated(d, 10_000, false);
  }

  private static void windowsOfQwen(Draft d) {
    HubConfig c = d.config;
    boolean narrow = c.flag("use_sliding_window", false);
    int size = c.countOrNone("sliding_window", 4096, MAX_POSITIONS);
    int first = c.id("max_window_layers", 28, MAX_LAYERS);
    List<String> kinds = kinds(d, i -> narrow && size > 0 && i >= first);
    windows(d, kinds, narrow ? size : 0);
  }

  static void qwen3(Draft d) {
    llamaKin(d, 32, 128, 32_768);
    windowsOfQwen(d);
    qwen3Kin(d);
  }

  private static void qwen3Kin(Draft d) {
    activated(d);
    attentionBias(d);
    d.queryNorm = QueryNorm.HEAD;
    rotated(d, 10_000, false);
  }

  static void qwen3Moe(Draft d) {
    HubConfig c = d.config;
    llamaKin(d, 4, 0, 32_768);
    int size = c.countOrNone("sliding_window", 4096, MAX_POSITIONS);
    boolean narrow = c.flag("use_sliding_window", false);
    d.window = _ -> narrow ? size : 0;
    c.id("max_window_layers", 0, MAX_LAYERS); // all layers have the window
    qwen3Kin(d);
    boolean normalized = c.flag("norm_topk_prob", false);
    String count = c.has("num_local_experts") ? "num_local_experts" : "num_experts";
    experts(d, count, 128, 8, c.count("moe_intermediate_size", 768, WIDEST), normalized, false);
    int step = c.count("decoder_sparse_step", 1, MAX_LAYERS);
    List<Integer> plain = c.ids("mlp_only_layers", MAX_LAYERS);
    d.expertsIn = i -> !plain.contains(i) && (i + 1) % step == 0;
  }

  static void phi3(Draft d) {
    llamaKin(d, 0, 0, 4096);
    activated(d);
    d.epsilon = d.config.positive("rms_norm_eps", 1e-5);
    List.of("attention_bias", "mlp_bias", "lm_head_bias").forEach(d.config::requireOff);
    // The code that the first files name is in the library by now.
    d.config
        .object("auto_map")
        .ifPresent(code -> {
          code.word("AutoConfig", "");
          code.word("AutoModelForCausalLM", "");
          code.word("AutoTokenizer", "");
        });
    int window = d.config.countOrNone("sliding_window", 0, MAX_POSITIONS);
    d.window = _ -> window;
    rotated(d, 10_000, true);
    if (Rotations.originally(d.config).isEmpty()
        && Objects.requireNonNull(d.rotation.apply(0)).kind() instanceof Rotation.Each) {
      throw d.config.refuse("rope_scaling", "original_max_position_embeddings must be beside it");
    }
  }

  static void granite(Draft d) {
    HubConfig c = d.config;
    llamaKin(d, 0, 0, 2048);
    activated(d);
    attentionBias(d);
    d.feedForwardBias = c.flag("mlp_bias", false);
    rotated(d, 10_000, false);
    d.embeddingScale = c.positive("embedding_multiplier", 1);
    d.residualScale = c.positive("residual_multiplier", 1);
    d.scoreScale = 1 / c.positive("logits_scaling", 1);
    double scale = c.positive("attention_multiplier", 1);
    d.scale = _ -> scale;
  }

  static void smollm3(Draft d) {
    HubConfig c = d.config;
    llamaKin(d, 4, 0, 32_768);
    activated(d);
    attentionBias(d);
    d.feedForwardBias = c.flag("mlp_bias", false);
    d.usuallyTied = true;
    rotated(d, 2_000_000, false);
    Rotation rotation = d.rotation.apply(0);
    int interval = c.count("no_rope_layer_interval", 4, MAX_LAYERS);
    List<Integer> named = c.ids("no_rope_layers", 1);
    if (!named.isEmpty() && named.size() != d.count) {
      throw c.refuse("no_rope_layers", "it must be 0 or 1 for each layer");
    }
    List<Integer> turned =
        named.isEmpty()
            ? d.places().stream().map(i -> (i + 1) % interval == 0 ? 0 : 1).toList()
            : named;
    d.rotation = i -> turned.get(i) == 1 ? rotation : null;
    int said = c.countOrNone("sliding_window", 0, MAX_POSITIONS);
    int size = c.flag("use_sliding_window", false) ? said : 0;
    c.id("max_window_layers", 0, MAX_LAYERS); // which it does not use
    windows(d, kinds(d, i -> size > 0 && turned.get(i) == 0), size);
  }

  static void olmo2(Draft d) {
    llamaKin(d, 0, 0, 2048);
    activated(d);
    attentionBias(d);
    d.epsilon = d.config.positive("rms_norm_eps", 1e-5);
    d.place = Place.ON_RESULT;
    d.queryNorm = QueryNorm.WHOLE;
    rotated(d, 10_000, false);
  }

  static void stablelm(Draft d) {
    HubConfig c = d.config;
    llamaKin(d, 32, 0, 4096);
    activated(d);
    d.rms = false;
    d.epsilon = c.positive("layer_norm_eps", 1e-5);
    d.attentionBias = c.flag("use_qkv_bias", false);
    d.queryNorm = c.flag("qk_layernorm", false) ? QueryNorm.EACH_HEAD : QueryNorm.NONE;
    d.parallel = c.flag("use_parallel_residual", false);
    d.oneNorm = d.parallel;
    rotated(d, 10_000, true, 0.25);
  }

  static void gemma(Draft d) {
    gemmaKin(d, 16, 8192);
    d.config.requireOff("use_bidirectional_attention");
    Map<String, UnaryOperator<NDArray>> known = new TreeMap<>(Activations.KNOWN);
    known.put("gelu", Activations.TANH_GELU); // as old files call it
    d.activation = d.config.choice("hidden_act", "gelu_pytorch_tanh", known);
    if (d.config.has("hidden_activation")
        && !d.config.choice("hidden_activation", known).equals(d.activation)) {
      throw d.config.refuse("hidden_activation", "'hidden_act' beside it says otherwise");
    }
    rotated(d, 10_000, false);
  }

  private static void gemmaKin(Draft d, int groups, int longest) {
    llamaKin(d, groups, 256, longest);
    attentionBias(d);
    d.usuallyTied = true;
    d.plusOne = true;
    d.embeddingScale = Math.sqrt(d.width);
  }

  static void gemma2(Draft d) {
    HubConfig c = d.config;
    gemmaKin(d, 4, 8192);
    c.requireOff("use_bidirectional_attention");
    c.word("hidden_act", "");
    d.activation = c.choice("hidden_activation", "gelu_pytorch_tanh", Activations.KNOWN);
    d.place = Place.AROUND;
    double scale = 1 / Math.sqrt(c.positive("query_pre_attn_scalar", 256));
    d.scale = _ -> scale;
    d.cap = c.positiveOrNone("attn_logit_softcapping", 50);
    d.scoreCap = c.positiveOrNone("final_logit_softcapping", 30);
    int size = c.countOrNone("sliding_window", 4096, MAX_POSITIONS);
    windows(d, kinds(d, i -> i % 2 == 0), size);
    rotated(d, 10_000, false);
  }

  static void gemma3(Draft d) {
    HubConfig c = d.config;
    gemmaKin(d, 4, 131_072);
    c.word("hidden_act", "");
    d.activation = c.choice("hidden_activation", "gelu_pytorch_tanh", Activations.KNOWN);
    d.place = Place.AROUND;
    d.queryNorm = QueryNorm.HEAD;
    double scale = 1 / Math.sqrt(c.positive("query_pre_attn_scalar", 256));
    d.scale = _ -> scale;
    // The reference reads it and draws no scores of attention to it.
    c.positiveOrNone("attn_logit_softcapping", 0);
    d.scoreCap = c.positiveOrNone("final_logit_softcapping", 0);
    d.causal = !c.flag("use_bidirectional_attention", false);
    int size = c.countOrNone("sliding_window", 4096, MAX_POSITIONS);
    int pattern = c.count("sliding_window_pattern", 6, MAX_LAYERS);
    List<String> kinds = kinds(d, i -> (i + 1) % pattern != 0);
    windows(d, kinds, d.causal || size == 0 ? size : size / 2 + 1);
    HubConfig old = c.object("rope_scaling").orElseGet(HubConfig::empty);
    twoRotations(d, kinds, old, "rope_theta", 1_000_000, "rope_local_base_freq", 10_000);
  }

  static void gptOss(Draft d) {
    HubConfig c = d.config;
    llamaKin(d, 8, 64, 131_072);
    c.choice("hidden_act", "silu", Map.of("silu", true));
    d.epsilon = c.positive("rms_norm_eps", 1e-5);
    d.attentionBias = c.flag("attention_bias", true);
    d.outputBias = d.attentionBias;
    d.sinks = true;
    c.positive("swiglu_limit", 7);
    experts(d, "num_local_experts", 128, 4, d.hidden, true, true);
    windows(d, kinds(d, i -> i % 2 == 0), c.countOrNone("sliding_window", 128, MAX_POSITIONS));
    if (!c.has("rope_parameters")) {
      c.requireObject("rope_scaling"); // else waves are stretched, too, by numbers of the library
    }
    rotated(d, 150_000, false);
  }
}
