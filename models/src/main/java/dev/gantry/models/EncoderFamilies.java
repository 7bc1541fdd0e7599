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
import dev.gantry.models.internal.blocks.Description.Distances;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Place;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.Stem;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

/// Families whose tokens see one another, each as what it has otherwise than another.
final class EncoderFamilies {
  /// RoBERTa and its kin have BERT's names and shapes of tensors, and other positions.
  private static final Map<String, String> ROBERTA =
      Map.of("bos_token_id", "0", "pad_token_id", "1", "eos_token_id", "2");

  /// The tokenizer's class of a RoBERTa. Some BERTs have RoBERTa's special tokens; they name another
  /// tokenizer.
  private static final Pattern ROBERTA_TOKENIZER = Pattern.compile("^$|oberta|amembert");

  private static final UnaryOperator<NDArray> TANH = NDArray::tanh;

  private EncoderFamilies() {}

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

  static void biased(Draft d, boolean bias) {
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

  static void bert(Draft d) {
    if (d.config.says(ROBERTA)
        && ROBERTA_TOKENIZER.matcher(d.config.word("tokenizer_class", "")).find()) {
      throw d.config.refuse("model_type", "the special tokens are RoBERTa's: it must be 'roberta'");
    }
    encoder(d);
    d.headTensor = "cls.predictions.decoder.weight";
    d.sequence = d.pooler;
  }

  static void roberta(Draft d) {
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

  static void mpnet(Draft d) {
    roberta(d);
    d.padding = 1; // whatever pad_token_id says
    d.longest = d.rows - 2;
    d.types = 0;
    d.buckets = d.config.count("relative_attention_num_buckets", 32, MAX_HEADS);
    if (d.buckets != 32) {
      throw d.config.refuse("relative_attention_num_buckets", "it must be 32");
    }
  }

  static void distilbert(Draft d) {
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

  static void electra(Draft d) {
    encoder(d);
    d.embeddingWidth = d.config.count("embedding_size", 128, WIDEST);
    d.pooler = null;
    d.headTensor = "generator_lm_head.weight";
    d.transform = new Stem("transform", d.embeddingWidth, true, Activations.GELU, true);
    d.sequence = new Stem("classifier", d.width, true, Activations.GELU, false);
  }

  static void clipText(Draft d) {
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

  static void siglipText(Draft d) {
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

  static void deberta(Draft d) {
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

  static void modernbert(Draft d) {
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
}
