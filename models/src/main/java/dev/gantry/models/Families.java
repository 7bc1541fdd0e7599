// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.models.internal.blocks.Rotation;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Function;

/// The families of models of texts, each as what it has otherwise than another.
final class Families {
  static final int MAX_TOKENS = 16 << 20;
  static final int MAX_POSITIONS = 64 << 20;
  static final int WIDEST = 1 << 20;
  static final int MAX_LAYERS = 1024;
  static final int MAX_HEADS = 1 << 16;

  static final String SLIDING = "sliding_attention";

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
              Family.encoder("Bert", "bert", EncoderFamilies::bert)
                  .with(
                      Map.of(
                          "ForPreTraining", Head.PRETRAINING,
                          "ForNextSentencePrediction", Head.NEXT_SENTENCE))),
          Map.entry("roberta", Family.encoder("Roberta", "roberta", EncoderFamilies::roberta)),
          Map.entry(
              "xlm-roberta", Family.encoder("XLMRoberta", "roberta", EncoderFamilies::roberta)),
          Map.entry("camembert", Family.encoder("Camembert", "roberta", EncoderFamilies::roberta)),
          Map.entry("mpnet", Family.encoder("MPNet", "mpnet", EncoderFamilies::mpnet)),
          Map.entry(
              "distilbert",
              Family.encoder("DistilBert", "distilbert", EncoderFamilies::distilbert)),
          Map.entry(
              "electra",
              Family.encoder("Electra", "electra", EncoderFamilies::electra)
                  .with(Map.of("ForPreTraining", Head.PRETRAINING))),
          Map.entry("deberta-v2", Family.encoder("DebertaV2", "deberta", EncoderFamilies::deberta)),
          Map.entry(
              "clip_text_model",
              new Family(
                  "CLIPText",
                  Map.of("Model", Head.MODEL, "ModelWithProjection", Head.PROJECTION),
                  "Model",
                  "clip-text",
                  EncoderFamilies::clipText)),
          Map.entry(
              "siglip_text_model",
              new Family(
                  "SiglipText",
                  Map.of("Model", Head.MODEL),
                  "Model",
                  "siglip-text",
                  EncoderFamilies::siglipText)),
          Map.entry(
              "modernbert",
              Family.encoder("ModernBert", "modernbert", EncoderFamilies::modernbert)),
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
                  DecoderFamilies::gpt2)),
          Map.entry("gpt_neox", Family.decoder("GPTNeoX", "gpt-neox", DecoderFamilies::gptNeox)),
          Map.entry("llama", Family.decoder("Llama", "llama", DecoderFamilies::llama)),
          Map.entry("mistral", Family.decoder("Mistral", "llama", DecoderFamilies::mistral)),
          Map.entry("mixtral", Family.decoder("Mixtral", "mixtral", DecoderFamilies::mixtral)),
          Map.entry("qwen2", Family.decoder("Qwen2", "llama", DecoderFamilies::qwen2)),
          Map.entry("qwen3", Family.decoder("Qwen3", "qwen3", DecoderFamilies::qwen3)),
          Map.entry(
              "qwen3_moe", Family.decoder("Qwen3Moe", "qwen3-moe", DecoderFamilies::qwen3Moe)),
          Map.entry("phi3", Family.decoder("Phi3", "phi3", DecoderFamilies::phi3)),
          Map.entry("granite", Family.decoder("Granite", "llama", DecoderFamilies::granite)),
          Map.entry("smollm3", Family.decoder("SmolLM3", "llama", DecoderFamilies::smollm3)),
          Map.entry("olmo2", Family.decoder("Olmo2", "olmo2", DecoderFamilies::olmo2)),
          Map.entry("stablelm", Family.decoder("StableLm", "stablelm", DecoderFamilies::stablelm)),
          Map.entry("gemma", Family.decoder("Gemma", "llama", DecoderFamilies::gemma)),
          Map.entry("gemma2", Family.decoder("Gemma2", "gemma2", DecoderFamilies::gemma2)),
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
                  DecoderFamilies::gemma3)),
          Map.entry("gpt_oss", Family.decoder("GptOss", "gpt-oss", DecoderFamilies::gptOss)));

  private Families() {}

  /// The kinds of layers, as `layer_types` says, or else by their place.
  static List<String> kinds(Draft d, Function<Integer, Boolean> sliding) {
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
  static void windows(Draft d, List<String> kinds, int size) {
    if (size == 0 && kinds.contains(SLIDING)) {
      throw d.config.refuse("layer_types", "a layer has a window, and none is given");
    }
    d.window = i -> kinds.get(i).equals(SLIDING) ? size : 0;
  }

  /// A rotary embedding for layers that see all tokens, and another for those with a window.
  ///
  /// @param old what old files say of the former
  static void twoRotations(
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
}
