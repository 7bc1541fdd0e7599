// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import dev.gantry.djl.ParameterNames;
import dev.gantry.models.HubModel.Input;
import dev.gantry.models.TransformerBlock.Layers;
import dev.gantry.models.TransformerBlock.Trait;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// The architecture that a folder's `config.json` describes.
///
/// @param settings what of `config.json` decides how the block computes: equal ones make blocks that answer alike
/// @param labels of the classes; none if it does not classify
/// @param ends tokens that end a text
/// @param shapes of the inputs of a smallest batch, which initialise the block
record Architecture(
    String name,
    Object settings,
    Supplier<Block> block,
    ParameterNames names,
    List<Input> inputs,
    List<String> outputs,
    List<String> labels,
    List<Integer> ends,
    List<Shape> shapes) {
  static final int MAX_TOKENS = 16 << 20;
  private static final int MAX_POSITIONS = 64 << 20;
  private static final int WIDEST = 1 << 20;
  private static final int MAX_LAYERS = 1024;
  private static final int MAX_HEADS = 1 << 16;
  private static final int MAX_LABELS = 1 << 20;
  private static final int MAX_PIXELS = 1 << 16;
  private static final int MAX_STAGES = 64;

  /// Keys of `config.json` that change no answer of a model here: they describe the file, its training, its tokens, how
  /// text is generated, or what else the library that writes these files returns.
  private static final Set<String> HARMLESS = Set.copyOf(ResourceLines.of("harmless-keys.txt"));

  private static final String ORIGINAL = "original_max_position_embeddings";

  private static final Set<Trait> BIASED =
      Set.of(Trait.ATTENTION_BIAS, Trait.OUTPUT_BIAS, Trait.FEED_FORWARD_BIAS);

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

  /// @throws dev.gantry.core.MalformedFileException if `config.json` is of no known architecture, or
  ///     contradicts itself
  static Architecture of(HubFolder folder) {
    HubConfig config = folder.config();
    Architecture described = config.choice("model_type", BY_TYPE).apply(folder);
    config.requireOff("is_encoder_decoder");
    config
        .object("quantization_config")
        .ifPresent(quantised -> quantised.choice("quant_method", QUANTISATIONS).accept(quantised));
    config.requireAllRead(HARMLESS);
    return described;
  }

  /// One of the model classes that `architectures` may name.
  private record Variant(String name, Head head) {}

  /// The variant that `architectures` names first, or `base` if it names none.
  private static Variant chosen(HubConfig config, String base, Variant... known) {
    List<String> named = config.words("architectures");
    String name = named.isEmpty() ? base : named.getFirst();
    return Stream.of(known)
        .filter(each -> each.name().equals(name))
        .findFirst()
        .orElseThrow(() ->
            config.refuse(
                "architectures",
                "'"
                    + name
                    + "' is not known; known are "
                    + Stream.of(known).map(Variant::name).collect(Collectors.joining(", "))));
  }

  private static Head scores(HubFolder folder, boolean usuallyTied, String tensor) {
    return folder.isTied(usuallyTied, tensor) ? Head.TIED : Head.OWN;
  }

  private static Architecture llama(HubFolder folder) {
    HubConfig config = folder.config();
    Variant chosen =
        chosen(
            config,
            "LlamaForCausalLM",
            new Variant("LlamaForCausalLM", scores(folder, false, "lm_head.weight")),
            new Variant("LlamaModel", Head.NONE));
    if (config.says(GEMMA)) {
      throw config.refuse("model_type", "the special tokens are Gemma's, which is not supported");
    }
    config.requireOff("rope_interleaved");
    int width = config.count("hidden_size", WIDEST);
    int heads = config.count("num_attention_heads", MAX_HEADS);
    int groups = config.count("num_key_value_heads", heads, MAX_HEADS);
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
    Set<Trait> traits = EnumSet.of(Trait.RMS_NORM, Trait.GATE);
    if (config.flag("attention_bias", false)) {
      traits.addAll(List.of(Trait.ATTENTION_BIAS, Trait.OUTPUT_BIAS));
    }
    if (config.flag("mlp_bias", false)) {
      traits.add(Trait.FEED_FORWARD_BIAS);
    }
    Layers layers =
        new Layers(
            config.count("num_hidden_layers", MAX_LAYERS),
            width,
            config.count("intermediate_size", WIDEST),
            heads,
            groups,
            headSize,
            config.positive("rms_norm_eps", 1e-6),
            config.choice("hidden_act", "silu", Activations.KNOWN),
            traits);
    int longest = config.count("max_position_embeddings", 2048, MAX_POSITIONS);
    List<Float> stretches = folder.stretches();
    if (!stretches.isEmpty() && stretches.size() != headSize / 2) {
      throw config.refuse(
          "num_attention_heads",
          "a head has " + headSize / 2 + " waves, and factors are for " + stretches.size());
    }
    Rotation rotation = rotation(config).stretched(stretches);
    return text(folder, chosen, "llama", layers, 0, longest, Optional.of(rotation), List.of());
  }

  /// @param types how many token types there are; 0 for a decoder
  private static Architecture text(
      HubFolder folder,
      Variant chosen,
      String names,
      Layers layers,
      int types,
      int longest,
      Optional<Rotation> rotation,
      List<String> labels) {
    int vocabulary = folder.config().count("vocab_size", MAX_TOKENS);
    TextBlock.Sizes sizes =
        new TextBlock.Sizes(
            layers,
            vocabulary,
            types,
            longest,
            rotation.orElse(null),
            chosen.head(),
            labels.size());
    Stream<Input> inputs =
        Stream.of(
            new Input("input_ids", DataType.INT64, vocabulary, true),
            new Input("attention_mask", DataType.INT64, 2, false),
            new Input("token_type_ids", DataType.INT64, types, false));
    return new Architecture(
        chosen.name(),
        sizes,
        sizes::block,
        HubNames.of(names, chosen.head()),
        inputs.limit(types == 0 ? 2 : 3).toList(),
        chosen.head().outputs(),
        labels,
        types == 0 ? folder.ends() : List.of(),
        Collections.nCopies(types == 0 ? 1 : 3, new Shape(1, 1)));
  }

  /// The rotary embedding: new files have `rope_parameters`, older ones `rope_theta` and `rope_scaling`. If a
  /// file has both, they must say the same: versions of the library that writes them read one or the other.
  private static Rotation rotation(HubConfig config) {
    List<Rotation> said =
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

  private static Rotation rotation(HubConfig config, HubConfig rope) {
    double theta = rope.positive("rope_theta", config.positive("rope_theta", 10_000));
    int longest = config.count("max_position_embeddings", 2048, MAX_POSITIONS);
    // If the key is both in the configuration and in the object within it, the configuration's own
    // counts.
    int original =
        config.count(ORIGINAL, rope.count(ORIGINAL, longest, MAX_POSITIONS), MAX_POSITIONS);
    Map<String, Function<HubConfig, Rotation>> known =
        Map.of(
            "default",
            _ -> Rotation.linear(theta, 1),
            "linear",
            scaled -> Rotation.linear(theta, scaled.positive("factor")),
            "llama3",
            scaled -> stretched(theta, original, scaled));
    String key = rope.has("type") && !rope.has("rope_type") ? "type" : "rope_type";
    return rope.choice(key, "default", known).apply(rope);
  }

  private static Rotation stretched(double theta, int original, HubConfig rope) {
    double low = rope.positive("low_freq_factor");
    double high = rope.positive("high_freq_factor");
    if (high <= low) {
      throw rope.refuse("high_freq_factor", "it must be more than low_freq_factor, " + low);
    }
    return new Rotation(theta, rope.positive("factor"), low, high, original, List.of());
  }

  private static Architecture gpt2(HubFolder folder) {
    HubConfig config = folder.config();
    Variant chosen =
        chosen(
            config,
            "GPT2LMHeadModel",
            new Variant("GPT2LMHeadModel", scores(folder, true, "lm_head.weight")),
            new Variant("GPT2Model", Head.NONE));
    config.requireOff("add_cross_attention");
    int width = config.count("n_embd", 768, WIDEST);
    int heads = config.count("n_head", 12, MAX_HEADS);
    config.requireMultiple("n_embd", width, "n_head", heads);
    Set<Trait> traits = EnumSet.copyOf(BIASED);
    if (!config.flag("scale_attn_weights", true)) {
      traits.add(Trait.UNSCALED);
    }
    if (config.flag("scale_attn_by_inverse_layer_idx", false)) {
      traits.add(Trait.SCALED_BY_LAYER);
    }
    Layers layers =
        new Layers(
            config.count("n_layer", 12, MAX_LAYERS),
            width,
            config.count("n_inner", Math.min(WIDEST, 4 * width), WIDEST),
            heads,
            heads,
            width / heads,
            config.positive("layer_norm_epsilon", 1e-5),
            config.choice("activation_function", "gelu_new", Activations.KNOWN),
            traits);
    int longest = config.count("n_positions", 1024, MAX_POSITIONS);
    return text(folder, chosen, "gpt2", layers, 0, longest, Optional.empty(), List.of());
  }

  /// The layers of BERT and ViT.
  private static Layers encoder(HubConfig config, Set<Trait> traits) {
    int width = config.count("hidden_size", 768, WIDEST);
    int heads = config.count("num_attention_heads", 12, MAX_HEADS);
    config.requireMultiple("hidden_size", width, "num_attention_heads", heads);
    return new Layers(
        config.count("num_hidden_layers", 12, MAX_LAYERS),
        width,
        config.count("intermediate_size", 3072, WIDEST),
        heads,
        heads,
        width / heads,
        config.positive("layer_norm_eps", 1e-12),
        config.choice("hidden_act", "gelu", Activations.KNOWN),
        traits);
  }

  private static Architecture bert(HubFolder folder) {
    HubConfig config = folder.config();
    Variant chosen =
        chosen(
            config,
            "BertModel",
            new Variant("BertModel", folder.hasPooler() ? Head.POOLER : Head.NONE),
            new Variant("BertForMaskedLM", scores(folder, true, "cls.predictions.decoder.weight")),
            new Variant("BertForSequenceClassification", Head.SEQUENCE),
            new Variant("BertForTokenClassification", Head.TOKENS));
    if (config.says(ROBERTA)
        && ROBERTA_TOKENIZER.matcher(config.word("tokenizer_class", "")).find()) {
      throw config.refuse("model_type", "the special tokens are RoBERTa's, which is not supported");
    }
    config.requireOff("is_decoder");
    config.requireOff("add_cross_attention");
    config.choice("position_embedding_type", "absolute", Map.of("absolute", true));
    Set<Trait> traits = EnumSet.copyOf(BIASED);
    traits.add(Trait.NORM_BEHIND);
    Layers layers = encoder(config, traits);
    int types = config.count("type_vocab_size", 2, MAX_TOKENS);
    int longest = config.count("max_position_embeddings", 512, MAX_POSITIONS);
    List<String> labels = labels(config, chosen);
    return text(folder, chosen, "bert", layers, types, longest, Optional.empty(), labels);
  }

  /// @param size of an image on both sides
  private static Architecture image(
      Variant chosen,
      Object settings,
      Supplier<Block> block,
      String names,
      List<String> labels,
      int channels,
      int size) {
    return new Architecture(
        chosen.name(),
        settings,
        block,
        HubNames.of(names, chosen.head()),
        List.of(new Input("pixel_values", DataType.FLOAT32, 0, true)),
        chosen.head().outputs(),
        labels,
        List.of(),
        List.of(new Shape(1, channels, size, size)));
  }

  private static Architecture vit(HubFolder folder) {
    HubConfig config = folder.config();
    Variant chosen =
        chosen(
            config,
            "ViTForImageClassification",
            new Variant("ViTForImageClassification", Head.FIRST),
            new Variant("ViTModel", folder.hasPooler() ? Head.POOLER : Head.NONE));
    if (chosen.head() == Head.POOLER) {
      config.choice("pooler_act", "tanh", Map.of("tanh", true));
    }
    Set<Trait> traits = EnumSet.copyOf(BIASED);
    if (!config.flag("qkv_bias", true)) {
      traits.remove(Trait.ATTENTION_BIAS);
    }
    Layers layers = encoder(config, traits);
    int image = config.count("image_size", 224, MAX_PIXELS);
    int patch = config.count("patch_size", 16, MAX_PIXELS);
    if (patch > image) {
      throw config.refuse("patch_size", "it must be no more than image_size, " + image);
    }
    int channels = config.count("num_channels", 3, MAX_PIXELS);
    List<String> labels = labels(config, chosen);
    int headSize =
        chosen.head() == Head.POOLER
            ? config.count("pooler_output_size", layers.width(), WIDEST)
            : labels.size();
    return image(
        chosen,
        List.of(layers, channels, image, patch, chosen.head(), headSize),
        () -> new VitBlock(layers, channels, image, patch, chosen.head(), headSize),
        "vit",
        labels,
        channels,
        image);
  }

  private static Architecture resnet(HubFolder folder) {
    HubConfig config = folder.config();
    Variant chosen =
        chosen(
            config,
            "ResNetForImageClassification",
            new Variant("ResNetForImageClassification", Head.FIRST),
            new Variant("ResNetModel", Head.POOLER));
    List<Integer> filters = config.counts("hidden_sizes", MAX_STAGES, WIDEST);
    List<Integer> depths = config.counts("depths", MAX_STAGES, MAX_LAYERS);
    if (filters.size() != depths.size()) {
      throw config.refuse(
          "depths", "it must have as many numbers as hidden_sizes, " + filters.size());
    }
    boolean bottleneck =
        config.choice("layer_type", "bottleneck", Map.of("basic", false, "bottleneck", true));
    if (bottleneck && filters.stream().anyMatch(size -> size % 4 != 0)) {
      throw config.refuse("hidden_sizes", "a bottleneck's sizes must be multiples of 4");
    }
    List<String> labels = labels(config, chosen);
    ResnetBlock.Config sizes =
        new ResnetBlock.Config(
            config.count("num_channels", 3, MAX_PIXELS),
            config.count("embedding_size", 64, WIDEST),
            filters,
            depths,
            bottleneck,
            config.flag("downsample_in_bottleneck", false),
            config.flag("downsample_in_first_stage", false),
            config.choice("hidden_act", "relu", Activations.KNOWN),
            labels.size());
    return image(
        chosen, sizes, () -> new ResnetBlock(sizes), "resnet", labels, sizes.channels(), 224);
  }

  /// The names of the classes. Where `id2label` is missing, they are the names that the library itself makes
  /// up, usually two: `LABEL_0` and so on.
  private static List<String> labels(HubConfig config, Variant chosen) {
    if (!chosen.head().classifies()) {
      return List.of();
    }
    Map<String, String> named = config.texts("id2label");
    int count = named.isEmpty() ? config.count("num_labels", 2, MAX_LABELS) : named.size();
    return IntStream.range(0, count)
        .mapToObj(i -> named.getOrDefault(String.valueOf(i), "LABEL_" + i))
        .toList();
  }
}
