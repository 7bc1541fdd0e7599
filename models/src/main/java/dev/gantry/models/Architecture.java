// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import dev.gantry.djl.ParameterNames;
import dev.gantry.models.HubModel.Input;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// What a folder's `config.json` describes.
///
/// @param labels of the classes; none if it does not classify
/// @param ends tokens that end a text
/// @param shapes of the inputs of a smallest batch, which initialise the block
record Architecture(
    String name,
    Supplier<Block> block,
    ParameterNames names,
    List<Input> inputs,
    List<String> outputs,
    List<String> labels,
    List<Integer> ends,
    List<Shape> shapes) {
  static final int MOST_TOKENS = 16 << 20;
  private static final int MOST_POSITIONS = 64 << 20;
  private static final int WIDEST = 1 << 20;
  private static final int MOST_LAYERS = 1024;
  private static final int MOST_HEADS = 1 << 16;
  private static final int MOST_LABELS = 1 << 20;
  private static final int MOST_PIXELS = 1 << 16;
  private static final int MOST_STAGES = 64;

  /// The states of a model without a pooler.
  private static final List<String> STATE = NamedBlock.STATES.subList(0, 1);

  private static final String ORIGINAL = "original_max_position_embeddings";

  private static final Map<String, Function<HubFolder, Architecture>> BY_TYPE =
      Map.of(
          "bert", Architecture::bert,
          "gpt2", Architecture::gpt2,
          "llama", Architecture::llama,
          "resnet", Architecture::resnet,
          "vit", Architecture::vit);

  /// The quantisations whose stored values and scales a load multiplies, and a check of what else they need.
  private static final Map<String, Consumer<HubConfig>> QUANTISATIONS =
      Map.of(
          "fp8",
          _ -> {},
          "fbgemm_fp8",
          _ -> {},
          "compressed-tensors",
          quantised -> quantised.choice("format", Map.of("float-quantized", true)));

  /// RoBERTa and its kin have BERT's names and shapes of tensors, and other positions.
  private static final Map<String, String> ROBERTA =
      Map.of("bos_token_id", "0", "pad_token_id", "1", "eos_token_id", "2");

  /// There are BERTs with RoBERTa's special tokens; they name a tokenizer of their own.
  private static final Pattern ROBERTA_TOKENIZER = Pattern.compile("^$|oberta|amembert");

  /// Gemma has Llama's names and shapes of tensors, and another normalization.
  private static final Map<String, String> GEMMA =
      Map.of(
          "bos_token_id", "2",
          "eos_token_id", "1",
          "pad_token_id", "0",
          "hidden_act", "gelu_pytorch_tanh");

  /// @throws dev.gantry.core.MalformedFileException if it is of no known architecture, or makes no
  ///     sense
  static Architecture of(HubFolder folder) {
    HubConfig config = folder.config();
    Architecture described = config.choice("model_type", BY_TYPE).apply(folder);
    config.requireOff("is_encoder_decoder");
    config
        .object("quantization_config")
        .ifPresent(quantised -> quantised.choice("quant_method", QUANTISATIONS).accept(quantised));
    config.requireAllRead(HarmlessKeys.ALL);
    return described;
  }

  /// What the first of `architectures` stands for.
  private static <T> Map.Entry<String, T> chosen(
      HubConfig config, String base, SequencedMap<String, T> known) {
    List<String> named = config.words("architectures");
    String name = named.isEmpty() ? base : named.getFirst();
    T chosen = known.get(name);
    if (chosen == null) {
      throw config.refuse(
          "architectures",
          "'" + name + "' is not known; known are " + String.join(", ", known.keySet()));
    }
    return Map.entry(name, chosen);
  }

  private static <T> SequencedMap<String, T> known(String name, T value, String other, T another) {
    SequencedMap<String, T> known = new LinkedHashMap<>();
    known.put(name, value);
    known.put(other, another);
    return known;
  }

  private static Architecture llama(HubFolder folder) {
    HubConfig config = folder.config();
    LlamaBlock.Head scores =
        folder.isTied(false, "lm_head.weight") ? LlamaBlock.Head.TIED : LlamaBlock.Head.OWN;
    var chosen =
        chosen(
            config,
            "LlamaForCausalLM",
            known("LlamaForCausalLM", scores, "LlamaModel", LlamaBlock.Head.NONE));
    if (config.says(GEMMA)) {
      throw config.refuse("model_type", "the special tokens are Gemma's, which is not supported");
    }
    config.requireOff("rope_interleaved");
    int width = config.count("hidden_size", WIDEST);
    int heads = config.count("num_attention_heads", MOST_HEADS);
    int groups = config.count("num_key_value_heads", heads, MOST_HEADS);
    config.requireMultiple("num_attention_heads", heads, "num_key_value_heads", groups);
    if (!config.has("head_dim")) {
      config.requireMultiple("hidden_size", width, "num_attention_heads", heads);
    }
    int headSize = config.count("head_dim", Math.max(1, width / heads), WIDEST);
    if (headSize % 2 != 0) {
      throw config.refuse(
          config.has("head_dim") ? "head_dim" : "hidden_size",
          "a head's size must be even for the rotary embedding (is " + headSize + ")");
    }
    LlamaBlock.Config sizes =
        new LlamaBlock.Config(
            config.count("vocab_size", MOST_TOKENS),
            width,
            config.count("intermediate_size", WIDEST),
            config.count("num_hidden_layers", MOST_LAYERS),
            heads,
            groups,
            headSize,
            config.count("max_position_embeddings", 2048, MOST_POSITIONS),
            config.positive("rms_norm_eps", 1e-6),
            rotation(config),
            config.choice("hidden_act", "silu", Activations.KNOWN),
            config.flag("attention_bias", false),
            config.flag("mlp_bias", false),
            chosen.getValue());
    return new Architecture(
        chosen.getKey(),
        () -> new LlamaBlock(sizes),
        HubNames.llama(sizes.head()),
        text(sizes.vocabulary()),
        sizes.head() == LlamaBlock.Head.NONE ? STATE : NamedBlock.LOGITS,
        List.of(),
        folder.ends(),
        List.of(new Shape(1, 1)));
  }

  /// `rope_parameters` in new files; `rope_theta` and `rope_scaling` in older ones. If a file has
  /// both, they must say the same: versions of the library that writes them read one or the other.
  private static LlamaBlock.Rotation rotation(HubConfig config) {
    List<LlamaBlock.Rotation> said =
        Stream.of("rope_scaling", "rope_parameters")
            .flatMap(key -> config.object(key).stream())
            .map(rope -> rotation(config, rope))
            .distinct()
            .toList();
    if (said.size() > 1) {
      throw config.refuse("rope_scaling", "'rope_parameters' beside it says otherwise");
    }
    return said.isEmpty() ? rotation(config, HubConfig.empty()) : said.getFirst();
  }

  private static LlamaBlock.Rotation rotation(HubConfig config, HubConfig rope) {
    double theta = rope.positive("rope_theta", config.positive("rope_theta", 10_000));
    int longest = config.count("max_position_embeddings", 2048, MOST_POSITIONS);
    // The one that stands outside counts, if there are two.
    int original =
        config.count(ORIGINAL, rope.count(ORIGINAL, longest, MOST_POSITIONS), MOST_POSITIONS);
    Map<String, Function<HubConfig, LlamaBlock.Rotation>> known =
        Map.of(
            "default",
            _ -> LlamaBlock.Rotation.plain(theta),
            "linear",
            scaled -> LlamaBlock.Rotation.linear(theta, scaled.positive("factor")),
            "llama3",
            scaled -> stretched(theta, original, scaled));
    String key = rope.has("type") && !rope.has("rope_type") ? "type" : "rope_type";
    return rope.choice(key, "default", known).apply(rope);
  }

  private static LlamaBlock.Rotation stretched(double theta, int original, HubConfig rope) {
    double low = rope.positive("low_freq_factor");
    double high = rope.positive("high_freq_factor");
    if (high <= low) {
      throw rope.refuse("high_freq_factor", "it must be more than low_freq_factor, " + low);
    }
    return new LlamaBlock.Rotation(theta, rope.positive("factor"), low, high, original);
  }

  private static Architecture gpt2(HubFolder folder) {
    HubConfig config = folder.config();
    LlamaBlock.Head scores =
        folder.isTied(true, "lm_head.weight") ? LlamaBlock.Head.TIED : LlamaBlock.Head.OWN;
    var chosen =
        chosen(
            config,
            "GPT2LMHeadModel",
            known("GPT2LMHeadModel", scores, "GPT2Model", LlamaBlock.Head.NONE));
    config.requireOff("add_cross_attention");
    int width = config.count("n_embd", 768, WIDEST);
    int heads = config.count("n_head", 12, MOST_HEADS);
    config.requireMultiple("n_embd", width, "n_head", heads);
    Gpt2Block.Config sizes =
        new Gpt2Block.Config(
            config.count("vocab_size", MOST_TOKENS),
            width,
            config.count("n_inner", Math.min(WIDEST, 4 * width), WIDEST),
            config.count("n_layer", 12, MOST_LAYERS),
            heads,
            config.count("n_positions", 1024, MOST_POSITIONS),
            config.positive("layer_norm_epsilon", 1e-5),
            config.choice("activation_function", "gelu_new", Activations.KNOWN),
            config.flag("scale_attn_weights", true),
            config.flag("scale_attn_by_inverse_layer_idx", false),
            chosen.getValue());
    return new Architecture(
        chosen.getKey(),
        () -> new Gpt2Block(sizes),
        HubNames.gpt2(sizes.head()),
        text(sizes.vocabulary()),
        sizes.head() == LlamaBlock.Head.NONE ? STATE : NamedBlock.LOGITS,
        List.of(),
        folder.ends(),
        List.of(new Shape(1, 1)));
  }

  private static List<Input> text(int vocabulary) {
    return List.of(
        new Input("input_ids", DataType.INT64, vocabulary, true),
        new Input("attention_mask", DataType.INT64, 2, false));
  }

  private static Architecture bert(HubFolder folder) {
    HubConfig config = folder.config();
    SequencedMap<String, BertModelBlock.Head> known =
        known(
            "BertModel",
            folder.hasPooler() ? BertModelBlock.Head.POOLER : BertModelBlock.Head.NONE,
            "BertForMaskedLM",
            folder.isTied(true, "cls.predictions.decoder.weight")
                ? BertModelBlock.Head.MASKED_TOKENS_TIED
                : BertModelBlock.Head.MASKED_TOKENS);
    known.put("BertForSequenceClassification", BertModelBlock.Head.SEQUENCE);
    known.put("BertForTokenClassification", BertModelBlock.Head.TOKENS);
    var chosen = chosen(config, "BertModel", known);
    if (config.says(ROBERTA)
        && ROBERTA_TOKENIZER.matcher(config.word("tokenizer_class", "")).find()) {
      throw config.refuse("model_type", "the special tokens are RoBERTa's, which is not supported");
    }
    config.requireOff("is_decoder");
    config.requireOff("add_cross_attention");
    config.choice("position_embedding_type", "absolute", Map.of("absolute", true));
    int width = config.count("hidden_size", 768, WIDEST);
    int heads = config.count("num_attention_heads", 12, MOST_HEADS);
    config.requireMultiple("hidden_size", width, "num_attention_heads", heads);
    List<String> labels =
        switch (chosen.getValue()) {
          case SEQUENCE, TOKENS -> labels(config);
          case NONE, POOLER, MASKED_TOKENS_TIED, MASKED_TOKENS -> List.of();
        };
    BertModelBlock.Config sizes =
        new BertModelBlock.Config(
            config.count("vocab_size", MOST_TOKENS),
            config.count("type_vocab_size", 2, MOST_TOKENS),
            width,
            config.count("intermediate_size", 3072, WIDEST),
            config.count("num_hidden_layers", 12, MOST_LAYERS),
            heads,
            config.count("max_position_embeddings", 512, MOST_POSITIONS),
            config.positive("layer_norm_eps", 1e-12),
            config.choice("hidden_act", "gelu", Activations.KNOWN),
            chosen.getValue(),
            Math.max(1, labels.size()));
    List<String> outputs =
        switch (sizes.head()) {
          case NONE -> STATE;
          case POOLER -> NamedBlock.STATES;
          case MASKED_TOKENS_TIED, MASKED_TOKENS, SEQUENCE, TOKENS -> NamedBlock.LOGITS;
        };
    return new Architecture(
        chosen.getKey(),
        () -> new BertModelBlock(sizes),
        HubNames.bert(sizes.head()),
        List.of(
            new Input("input_ids", DataType.INT64, sizes.vocabulary(), true),
            new Input("attention_mask", DataType.INT64, 2, false),
            new Input("token_type_ids", DataType.INT64, sizes.types(), false)),
        outputs,
        labels,
        List.of(),
        List.of(new Shape(1, 1), new Shape(1, 1), new Shape(1, 1)));
  }

  private static Architecture vit(HubFolder folder) {
    HubConfig config = folder.config();
    var chosen =
        chosen(
            config,
            "ViTForImageClassification",
            known("ViTForImageClassification", true, "ViTModel", false));
    boolean classifies = chosen.getValue();
    boolean pools = !classifies && folder.hasPooler();
    if (pools) {
      config.choice("pooler_act", "tanh", Map.of("tanh", true));
    }
    int width = config.count("hidden_size", 768, WIDEST);
    int heads = config.count("num_attention_heads", 12, MOST_HEADS);
    config.requireMultiple("hidden_size", width, "num_attention_heads", heads);
    int image = config.count("image_size", 224, MOST_PIXELS);
    int patch = config.count("patch_size", 16, MOST_PIXELS);
    if (patch > image) {
      throw config.refuse("patch_size", "it must be no more than image_size, " + image);
    }
    List<String> labels = classifies ? labels(config) : List.of();
    VitBlock.Config sizes =
        new VitBlock.Config(
            config.count("num_channels", 3, MOST_PIXELS),
            image,
            image,
            patch,
            patch,
            width,
            config.count("intermediate_size", 3072, WIDEST),
            config.count("num_hidden_layers", 12, MOST_LAYERS),
            heads,
            config.positive("layer_norm_eps", 1e-12),
            config.choice("hidden_act", "gelu", Activations.KNOWN),
            config.flag("qkv_bias", true),
            labels.size(),
            pools ? config.count("pooler_output_size", width, WIDEST) : 0);
    return new Architecture(
        chosen.getKey(),
        () -> new VitBlock(sizes),
        HubNames.vit(),
        List.of(new Input("pixel_values", DataType.FLOAT32, 0, true)),
        classifies ? NamedBlock.LOGITS : pools ? NamedBlock.STATES : STATE,
        labels,
        List.of(),
        List.of(new Shape(1, sizes.channels(), image, image)));
  }

  private static Architecture resnet(HubFolder folder) {
    HubConfig config = folder.config();
    var chosen =
        chosen(
            config,
            "ResNetForImageClassification",
            known("ResNetForImageClassification", true, "ResNetModel", false));
    boolean classifies = chosen.getValue();
    List<Integer> filters = config.counts("hidden_sizes", MOST_STAGES, WIDEST);
    List<Integer> depths = config.counts("depths", MOST_STAGES, MOST_LAYERS);
    if (filters.size() != depths.size()) {
      throw config.refuse(
          "depths", "it must have as many numbers as hidden_sizes, " + filters.size());
    }
    boolean bottleneck =
        config.choice("layer_type", "bottleneck", Map.of("basic", false, "bottleneck", true));
    if (bottleneck && filters.stream().anyMatch(size -> size % 4 != 0)) {
      throw config.refuse("hidden_sizes", "a bottleneck's sizes must be multiples of 4");
    }
    List<String> labels = classifies ? labels(config) : List.of();
    ResnetBlock.Config sizes =
        new ResnetBlock.Config(
            config.count("num_channels", 3, MOST_PIXELS),
            config.count("embedding_size", 64, WIDEST),
            filters,
            depths,
            bottleneck,
            config.flag("downsample_in_bottleneck", false),
            config.flag("downsample_in_first_stage", false),
            config.choice("hidden_act", "relu", Activations.KNOWN),
            labels.size());
    return new Architecture(
        chosen.getKey(),
        () -> new ResnetBlock(sizes),
        HubNames.resnet(),
        List.of(new Input("pixel_values", DataType.FLOAT32, 0, true)),
        classifies ? NamedBlock.LOGITS : NamedBlock.STATES,
        labels,
        List.of(),
        List.of(new Shape(1, sizes.channels(), 224, 224)));
  }

  /// The names of the classes. The library writes `id2label` unless it has the two that it makes up.
  private static List<String> labels(HubConfig config) {
    Map<String, String> named = config.texts("id2label");
    int count = named.isEmpty() ? config.count("num_labels", 2, MOST_LABELS) : named.size();
    return IntStream.range(0, count)
        .mapToObj(i -> named.getOrDefault(String.valueOf(i), "LABEL_" + i))
        .toList();
  }
}
