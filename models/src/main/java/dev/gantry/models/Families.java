// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import dev.gantry.models.internal.blocks.Activations;
import dev.gantry.models.internal.blocks.Description.Distances;
import dev.gantry.models.internal.blocks.Description.Experts;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Place;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.QueryNorm;
import dev.gantry.models.internal.blocks.Description.Stem;
import dev.gantry.models.internal.blocks.Rotation;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

/// The families of models of texts, each as what it has otherwise than another.
final class Families {
  static final int MAX_TOKENS = 16 << 20;
  static final int MAX_POSITIONS = 64 << 20;
  static final int WIDEST = 1 << 20;
  static final int MAX_LAYERS = 1024;
  private static final int MAX_HEADS = 1 << 16;
  private static final int MAX_EXPERTS = 1 << 12;

  private static final UnaryOperator<NDArray> TANH = NDArray::tanh;
  private static final String SLIDING = "sliding_attention";

  /// RoBERTa and its kin have BERT's names and shapes of tensors, and other positions.
  private static final Map<String, String> ROBERTA =
      Map.of("bos_token_id", "0", "pad_token_id", "1", "eos_token_id", "2");

  /// The tokenizer's class of a RoBERTa. Some BERTs have RoBERTa's special tokens; they name another
  /// tokenizer.
  private static final Pattern ROBERTA_TOKENIZER = Pattern.compile("^$|oberta|amembert");

  /// Gemma has Llama's names and shapes of tensors, and another normalization.
  private static final Map<String, String> GEMMA =
      Map.of(
          "bos_token_id", "2",
          "eos_token_id", "1",
          "pad_token_id", "0",
          "hidden_act", "gelu_pytorch_tanh");

  /// What follows a model's last layer.
  enum Head {
    MODEL,
    CAUSAL,
    MASKED,
    SEQUENCE,
    TOKENS,
    SPANS,
    PRETRAINING,
    NEXT_SENTENCE,
    PROJECTION
  }

  private static final Map<String, Head> ENCODER =
      Map.of(
          "Model", Head.MODEL,
          "ForMaskedLM", Head.MASKED,
          "ForSequenceClassification", Head.SEQUENCE,
          "ForTokenClassification", Head.TOKENS,
          "ForQuestionAnswering", Head.SPANS);
  private static final Map<String, Head> DECODER =
      Map.of(
          "ForCausalLM", Head.CAUSAL,
          "Model", Head.MODEL,
          "ForSequenceClassification", Head.SEQUENCE,
          "ForTokenClassification", Head.TOKENS,
          "ForQuestionAnswering", Head.SPANS);

  /// A family.
  ///
  /// @param base what the names of its classes begin with
  /// @param heads by what they end with
  /// @param usual the end where the file names no class
  /// @param names the section of the names of its tensors
  /// @param reads makes the description of a configuration
  record Family(
      String base, Map<String, Head> heads, String usual, String names, Consumer<Draft> reads) {
    private static Family encoder(String base, String names, Consumer<Draft> reads) {
      return new Family(base, ENCODER, "Model", names, reads);
    }

    private static Family decoder(String base, String names, Consumer<Draft> reads) {
      return new Family(base, DECODER, "ForCausalLM", names, reads);
    }

    private Family with(Map<String, Head> more) {
      Map<String, Head> all = new TreeMap<>(heads);
      all.putAll(more);
      return new Family(base, all, usual, names, reads);
    }
  }

  static final Map<String, Family> KNOWN =
      Map.ofEntries(
          Map.entry(
              "bert",
              Family.encoder("Bert", "bert", Families::bert)
                  .with(
                      Map.of(
                          "ForPreTraining", Head.PRETRAINING,
                          "ForNextSentencePrediction", Head.NEXT_SENTENCE))),
          Map.entry("roberta", Family.encoder("Roberta", "roberta", Families::roberta)),
          Map.entry("xlm-roberta", Family.encoder("XLMRoberta", "roberta", Families::roberta)),
          Map.entry("camembert", Family.encoder("Camembert", "roberta", Families::roberta)),
          Map.entry("mpnet", Family.encoder("MPNet", "mpnet", Families::mpnet)),
          Map.entry("distilbert", Family.encoder("DistilBert", "distilbert", Families::distilbert)),
          Map.entry(
              "electra",
              Family.encoder("Electra", "electra", Families::electra)
                  .with(Map.of("ForPreTraining", Head.PRETRAINING))),
          Map.entry("deberta-v2", Family.encoder("DebertaV2", "deberta", Families::deberta)),
          Map.entry(
              "clip_text_model",
              new Family(
                  "CLIPText",
                  Map.of("Model", Head.MODEL, "ModelWithProjection", Head.PROJECTION),
                  "Model",
                  "clip-text",
                  Families::clipText)),
          Map.entry(
              "siglip_text_model",
              new Family(
                  "SiglipText",
                  Map.of("Model", Head.MODEL),
                  "Model",
                  "siglip-text",
                  Families::siglipText)),
          Map.entry("modernbert", Family.encoder("ModernBert", "modernbert", Families::modernbert)),
          Map.entry(
              "gpt2",
              new Family(
                  "GPT2",
                  Map.of(
                      "LMHeadModel", Head.CAUSAL,
                      "Model", Head.MODEL,
                      "ForSequenceClassification", Head.SEQUENCE,
                      "ForTokenClassification", Head.TOKENS,
                      "ForQuestionAnswering", Head.SPANS),
                  "LMHeadModel",
                  "gpt2",
                  Families::gpt2)),
          Map.entry("gpt_neox", Family.decoder("GPTNeoX", "gpt-neox", Families::gptNeox)),
          Map.entry("llama", Family.decoder("Llama", "llama", Families::llama)),
          Map.entry("mistral", Family.decoder("Mistral", "llama", Families::mistral)),
          Map.entry("mixtral", Family.decoder("Mixtral", "mixtral", Families::mixtral)),
          Map.entry("qwen2", Family.decoder("Qwen2", "llama", Families::qwen2)),
          Map.entry("qwen3", Family.decoder("Qwen3", "qwen3", Families::qwen3)),
          Map.entry("qwen3_moe", Family.decoder("Qwen3Moe", "qwen3-moe", Families::qwen3Moe)),
          Map.entry("phi3", Family.decoder("Phi3", "phi3", Families::phi3)),
          Map.entry("granite", Family.decoder("Granite", "llama", Families::granite)),
          Map.entry("smollm3", Family.decoder("SmolLM3", "llama", Families::smollm3)),
          Map.entry("olmo2", Family.decoder("Olmo2", "olmo2", Families::olmo2)),
          Map.entry("stablelm", Family.decoder("StableLm", "stablelm", Families::stablelm)),
          Map.entry("gemma", Family.decoder("Gemma", "llama", Families::gemma)),
          Map.entry("gemma2", Family.decoder("Gemma2", "gemma2", Families::gemma2)),
          Map.entry(
              "gemma3_text",
              new Family(
                  "Gemma3",
                  Map.of(
                      "ForCausalLM", Head.CAUSAL,
                      "TextModel", Head.MODEL,
                      "TextForSequenceClassification", Head.SEQUENCE),
                  "ForCausalLM",
                  "gemma3",
                  Families::gemma3)),
          Map.entry("gpt_oss", Family.decoder("GptOss", "gpt-oss", Families::gptOss)));

  private Families() {}

  // Encoders.

  /// The sizes by the keys that most files have.
  static void sizes(Draft d) {
    HubConfig c = d.config;
    d.width = c.count("hidden_size", 768, WIDEST);
    d.heads = c.count("num_attention_heads", 12, MAX_HEADS);
    c.requireMultiple("hidden_size", d.width, "num_attention_heads", d.heads);
    d.groups = d.heads;
    d.headSize = d.width / d.heads;
    d.count = c.count("num_hidden_layers", 12, MAX_LAYERS);
    d.hidden = c.count("intermediate_size", 3072, WIDEST);
    d.epsilon = c.positive("layer_norm_eps", 1e-12);
    d.activation = c.choice("hidden_act", "gelu", Activations.KNOWN);
    biased(d, true);
  }

  private static void biased(Draft d, boolean bias) {
    d.attentionBias = bias;
    d.outputBias = bias;
    d.feedForwardBias = bias;
  }

  /// The layers of BERT, and tokens at learned positions.
  private static void encoder(Draft d) {
    sizes(d);
    d.config.requireOff("is_decoder");
    d.config.requireOff("add_cross_attention");
    d.config.choice("position_embedding_type", "absolute", Map.of("absolute", true));
    d.place = Place.BEHIND;
    d.vocabulary = d.config.count("vocab_size", MAX_TOKENS);
    d.rows = d.config.count("max_position_embeddings", 512, MAX_POSITIONS);
    d.longest = d.rows;
    d.embeddingNorm = true;
    d.headBias = true;
    d.types = d.config.count("type_vocab_size", 2, MAX_TOKENS);
    d.pooler = new Stem("pooler", d.width, true, TANH, false);
    d.transform = new Stem("transform", d.width, true, d.activation, true);
  }

  private static void bert(Draft d) {
    if (d.config.says(ROBERTA)
        && ROBERTA_TOKENIZER.matcher(d.config.word("tokenizer_class", "")).find()) {
      throw d.config.refuse("model_type", "the special tokens are RoBERTa's: it must be 'roberta'");
    }
    encoder(d);
    d.headTensor = "cls.predictions.decoder.weight";
    d.sequence = d.pooler;
  }

  private static void roberta(Draft d) {
    encoder(d);
    behindPadding(d);
    d.headTensor = "lm_head.decoder.weight";
    d.transform = new Stem("transform", d.width, true, Activations.GELU, true);
    d.sequence = new Stem("classifier", d.width, true, TANH, false);
  }

  /// Positions count on from the padding token's number.
  private static void behindPadding(Draft d) {
    d.padding = d.config.id("pad_token_id", 1, d.rows - 2);
    d.longest = d.rows - d.padding - 1;
  }

  private static void mpnet(Draft d) {
    roberta(d);
    d.padding = 1; // whatever pad_token_id says
    d.longest = d.rows - 2;
    d.types = 0;
    d.buckets = d.config.count("relative_attention_num_buckets", 32, MAX_HEADS);
    if (d.buckets != 32) {
      throw d.config.refuse("relative_attention_num_buckets", "it must be 32");
    }
  }

  private static void distilbert(Draft d) {
    HubConfig c = d.config;
    d.width = c.count("dim", c.count("hidden_size", 768, WIDEST), WIDEST);
    d.heads = c.count("n_heads", c.count("num_attention_heads", 12, MAX_HEADS), MAX_HEADS);
    c.requireMultiple("dim", d.width, "n_heads", d.heads);
    d.groups = d.heads;
    d.headSize = d.width / d.heads;
    d.count = c.count("n_layers", c.count("num_hidden_layers", 6, MAX_LAYERS), MAX_LAYERS);
    d.hidden = c.count("hidden_dim", 3072, WIDEST);
    d.epsilon = 1e-12;
    d.activation = c.choice("activation", "gelu", Activations.KNOWN);
    biased(d, true);
    d.place = Place.BEHIND;
    d.vocabulary = c.count("vocab_size", 30522, MAX_TOKENS);
    d.rows = c.count("max_position_embeddings", 512, MAX_POSITIONS);
    d.longest = d.rows;
    d.embeddingNorm = true;
    d.headBias = true;
    d.headTensor = "vocab_projector.weight";
    d.transform = new Stem("transform", d.width, true, d.activation, true);
    d.sequence = new Stem("classifier", d.width, true, Activations.RELU, false);
  }

  private static void electra(Draft d) {
    encoder(d);
    d.embeddingWidth = d.config.count("embedding_size", 128, WIDEST);
    d.pooler = null;
    d.headTensor = "generator_lm_head.weight";
    d.transform = new Stem("transform", d.embeddingWidth, true, Activations.GELU, true);
    d.sequence = new Stem("classifier", d.width, true, Activations.GELU, false);
  }

  private static void clipText(Draft d) {
    HubConfig c = d.config;
    tower(d, "quick_gelu", 1e-5);
    d.causal = true;
    d.vocabulary = c.count("vocab_size", 49_408, MAX_TOKENS);
    d.rows = c.count("max_position_embeddings", 77, MAX_POSITIONS);
    d.longest = d.rows;
    d.pool = Pool.END;
    int end = c.id("eos_token_id", 49_407, MAX_TOKENS);
    int size = c.count("projection_dim", 512, WIDEST);
    boolean projects = c.words("architectures").contains("CLIPTextModelWithProjection");
    d.summary =
        projects
            ? d.projected("text_embeds", end, size)
            : new Output(List.of("pooler_output"), Pool.END, end, null, null);
  }

  private static void siglipText(Draft d) {
    HubConfig c = d.config;
    tower(d, "gelu_pytorch_tanh", 1e-6);
    d.vocabulary = c.count("vocab_size", 32_000, MAX_TOKENS);
    d.rows = c.count("max_position_embeddings", 64, MAX_POSITIONS);
    d.longest = d.rows;
    int size = c.count("projection_size", d.width, WIDEST);
    Stem head = new Stem("pooler", size, true, UnaryOperator.identity(), false);
    d.summary = new Output(List.of("pooler_output"), Pool.LAST, -1, head, null);
  }

  /// The layers of one of two models that were trained together. Files say their sizes.
  static void tower(Draft d, String activation, double epsilon) {
    HubConfig c = d.config;
    List.of("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")
        .forEach(key -> c.count(key, WIDEST));
    sizes(d);
    d.activation = c.choice("hidden_act", activation, Activations.KNOWN);
    d.epsilon = c.positive("layer_norm_eps", epsilon);
    d.lastNorm = true;
  }

  private static void deberta(Draft d) {
    HubConfig c = d.config;
    sizes(d);
    d.epsilon = c.positive("layer_norm_eps", 1e-7);
    d.place = Place.BEHIND;
    d.vocabulary = c.count("vocab_size", 128_100, MAX_TOKENS);
    d.longest = c.count("max_position_embeddings", 512, MAX_POSITIONS);
    d.rows = c.flag("position_biased_input", true) ? d.longest : 0;
    d.types = c.id("type_vocab_size", 0, MAX_TOKENS);
    d.embeddingNorm = true;
    for (String width : List.of("embedding_size", "pooler_hidden_size")) {
      if (c.count(width, d.width, WIDEST) != d.width) {
        throw c.refuse(width, "it must be hidden_size, " + d.width);
      }
    }
    if (c.id("conv_kernel_size", 0, WIDEST) != 0) {
      throw c.refuse("conv_kernel_size", "a convolution is not supported; it must be 0");
    }
    if (!c.flag("legacy", true)) {
      throw c.refuse("legacy", "it must be true");
    }
    UnaryOperator<NDArray> act = c.choice("pooler_hidden_act", "gelu", Activations.KNOWN);
    d.sequence = new Stem("pooler", d.width, true, act, false);
    d.transform = new Stem("transform", d.width, true, d.activation, true);
    d.headBias = true;
    d.headTensor = "cls.predictions.decoder.weight";
    distances(d);
  }

  private static void distances(Draft d) {
    HubConfig c = d.config;
    List<String> both = List.of("c2p", "p2c");
    List<String> parts =
        c
            .choices(
                "pos_att_type",
                Map.of(
                    "c2p", List.of("c2p"), "p2c", List.of("p2c"), "c2p|p2c", both, "p2c|c2p", both))
            .stream()
            .flatMap(List::stream)
            .distinct()
            .toList();
    double scale = 1 / Math.sqrt(d.headSize * (1.0 + parts.size()));
    d.scale = _ -> scale;
    int said = c.countOrMinusOne("max_relative_positions", MAX_POSITIONS);
    int farthest = said < 1 ? d.longest : said;
    int buckets = Math.max(0, c.countOrMinusOne("position_buckets", MAX_POSITIONS));
    if (buckets == 1) {
      throw c.refuse("position_buckets", "it must be 2 or more");
    }
    boolean norm = c.choice("norm_rel_ebd", "none", Map.of("none", false, "layer_norm", true));
    boolean shared = c.flag("share_att_key", false);
    if (c.flag("relative_attention", false) && !parts.isEmpty()) {
      d.distances =
          new Distances(
              buckets == 0 ? farthest : buckets,
              buckets,
              farthest,
              norm,
              shared,
              parts.contains("c2p"),
              parts.contains("p2c"));
    }
  }

  private static void modernbert(Draft d) {
    HubConfig c = d.config;
    sizes(d);
    d.epsilon = c.positive("norm_eps", 1e-5);
    d.activation = c.choice("hidden_activation", "gelu", Activations.KNOWN);
    d.normBias = c.flag("norm_bias", false);
    d.attentionBias = c.flag("attention_bias", false);
    d.outputBias = d.attentionBias;
    d.feedForwardBias = c.flag("mlp_bias", false);
    d.gated = true;
    d.firstNorm = false;
    d.lastNorm = true;
    d.embeddingNorm = true;
    d.vocabulary = c.count("vocab_size", 50368, MAX_TOKENS);
    d.longest = c.count("max_position_embeddings", 8192, MAX_POSITIONS);
    int every = c.count("global_attn_every_n_layers", 3, MAX_LAYERS);
    List<String> kinds = kinds(d, i -> i % every != 0);
    windows(d, kinds, c.count("local_attention", 128, MAX_POSITIONS) / 2 + 1);
    c.word("position_embedding_type", "");
    HubConfig unscaled = HubConfig.empty();
    twoRotations(d, kinds, unscaled, "global_rope_theta", 160_000, "local_rope_theta", 10_000);
    boolean bias = c.flag("classifier_bias", false);
    UnaryOperator<NDArray> act = c.choice("classifier_activation", "gelu", Activations.KNOWN);
    d.transform = new Stem("transform", d.width, bias, act, true);
    d.sequence = d.transform;
    d.each = d.transform;
    d.pool = c.choice("classifier_pooling", "cls", Map.of("cls", Pool.FIRST, "mean", Pool.MEAN));
    d.headTensor = "decoder.weight";
    d.headBias = c.flag("decoder_bias", true);
    c.requireOff("sparse_prediction");
  }

  /// The kinds of layers, as `layer_types` says, or else by their place.
  private static List<String> kinds(Draft d, Function<Integer, Boolean> sliding) {
    List<String> said = d.config.words("layer_types");
    if (said.isEmpty()) {
      return d.places().stream().map(i -> sliding.apply(i) ? SLIDING : "full_attention").toList();
    }
    if (said.size() != d.count || !Set.of(SLIDING, "full_attention").containsAll(said)) {
      throw d.config.refuse(
          "layer_types", "it must be full_attention or sliding_attention for each layer");
    }
    return said;
  }

  /// Gives the layers that have a window its size.
  ///
  /// @param size 0 for none
  private static void windows(Draft d, List<String> kinds, int size) {
    if (size == 0 && kinds.contains(SLIDING)) {
      throw d.config.refuse("layer_types", "a layer has a window, and none is given");
    }
    d.window = i -> kinds.get(i).equals(SLIDING) ? size : 0;
  }

  /// A rotary embedding for layers that see all tokens, and another for those with a window.
  ///
  /// @param old what old files say of the former
  private static void twoRotations(
      Draft d,
      List<String> kinds,
      HubConfig old,
      String key,
      double theta,
      String localKey,
      double localTheta) {
    HubConfig c = d.config;
    HubConfig both = c.object("rope_parameters").orElseGet(HubConfig::empty);
    Rotations wide = new Rotations(c, d.headSize, c.positive(key, theta), false, 1, d.longest);
    Rotations near =
        new Rotations(c, d.headSize, c.positive(localKey, localTheta), false, 1, d.longest);
    Rotation full = wide.rotation(both.object("full_attention").orElse(old));
    Rotation local = near.rotation(both.object(SLIDING).orElseGet(HubConfig::empty));
    d.rotation = i -> kinds.get(i).equals(SLIDING) ? local : full;
  }

  // Decoders.

  private static void causal(Draft d) {
    d.causal = true;
    d.lastNorm = true;
    d.pool = Pool.LAST;
    d.labelBias = false;
    d.vocabulary = d.config.count("vocab_size", MAX_TOKENS);
  }

  private static void gpt2(Draft d) {
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
    biased(d, true);
    double scale = c.flag("scale_attn_weights", true) ? 1 / Math.sqrt(d.headSize) : 1;
    boolean byLayer = c.flag("scale_attn_by_inverse_layer_idx", false);
    d.scale = i -> byLayer ? scale / (i + 1) : scale;
    d.rows = c.count("n_positions", 1024, MAX_POSITIONS);
    d.longest = d.rows;
  }

  private static void gptNeox(Draft d) {
    HubConfig c = d.config;
    sizes(d);
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

  private static void llama(Draft d) {
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

  private static void mistral(Draft d) {
    llamaKin(d, 8, 0, 131_072);
    d.config.requireOff("attention_bias");
    activated(d);
    int window = d.config.countOrNone("sliding_window", 4096, MAX_POSITIONS);
    d.window = _ -> window;
    rotated(d, 10_000, false);
  }

  private static void mixtral(Draft d) {
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

  private static void qwen2(Draft d) {
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

  private static void qwen3(Draft d) {
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

  private static void qwen3Moe(Draft d) {
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

  private static void phi3(Draft d) {
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

  private static void granite(Draft d) {
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

  private static void smollm3(Draft d) {
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

  private static void olmo2(Draft d) {
    llamaKin(d, 0, 0, 2048);
    activated(d);
    attentionBias(d);
    d.epsilon = d.config.positive("rms_norm_eps", 1e-5);
    d.place = Place.ON_RESULT;
    d.queryNorm = QueryNorm.WHOLE;
    rotated(d, 10_000, false);
  }

  private static void stablelm(Draft d) {
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

  private static void gemma(Draft d) {
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

  private static void gemma2(Draft d) {
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

  private static void gemma3(Draft d) {
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

  private static void gptOss(Draft d) {
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
