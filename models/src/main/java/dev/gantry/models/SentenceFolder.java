// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.djl.internal.ndarray.OperatorArrays;
import dev.gantry.models.internal.blocks.TextBlock;
import dev.gantry.models.internal.texts.Pooling;
import dev.gantry.models.internal.texts.Similarity;
import dev.gantry.models.internal.texts.TextTokenizer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The files that sentence-transformers writes beside a model: `modules.json`, which lists the
/// modules after the transformer, `sentence_bert_config.json` and
/// `config_sentence_transformers.json`. A folder without these files holds only a transformer.
/// Unknown modules and settings are refused. Immutable.
///
/// @param modules the modules after the transformer
/// @param maxLength the most tokens of a text; 0 if the files do not say
/// @param prompts the texts to put before other texts, by their names
/// @param settings the settings of the whole folder
/// @param size how many numbers of a vector are kept; 0 for all
record SentenceFolder(
    List<Module> modules,
    int maxLength,
    boolean lowerCase,
    Map<String, String> prompts,
    String defaultPrompt,
    Similarity similarity,
    HubConfig settings,
    int size) {
  /// Says how the hidden states of a text's tokens become one vector.
  ///
  /// @param prompt whether the tokens of a prompt count
  record Pooled(List<Pooling> modes, boolean prompt) {}

  /// @param kind one of [#KINDS]
  record Module(String kind, Path folder) {
    /// Reads the module's file. Only a Normalize may lack it: the default modes of a Pooling might
    /// not be the model's modes.
    private HubConfig config() {
      Path file = folder.resolve("config.json");
      return kind.equals(NORMALIZE) ? HubConfig.optional(file) : HubConfig.read(file);
    }
  }

  private static final String TRANSFORMER = "Transformer";
  private static final String POOLING = "Pooling";
  private static final String DENSE = "Dense";
  private static final String NORMALIZE = "Normalize";
  private static final Set<String> KINDS = Set.of(TRANSFORMER, POOLING, DENSE, NORMALIZE);
  private static final String VECTOR = "sentence_embedding";
  private static final String TYPES = "token_type_ids";
  private static final String SCORES = "activation_fn";
  private static final int WIDEST = 1 << 20;

  private static final Map<String, Similarity> SIMILARITIES =
      Stream.of(Similarity.values())
          .collect(Collectors.toMap(each -> each.name().toLowerCase(Locale.ROOT), each -> each));

  /// The functions that may be applied after a dense layer or to the scores, by the last word of
  /// PyTorch's name.
  private static final Map<String, UnaryOperator<NDArray>> FUNCTIONS =
      Map.of(
          "Identity", array -> array,
          "Sigmoid", Activation::sigmoid,
          "Tanh", Activation::tanh,
          "ReLU", Activation::relu,
          "GELU", Activation::gelu,
          "SiLU", array -> Activation.swish(array, 1));

  /// The tokenizer classes that belong to no family. They give no token types, unless
  /// `model_input_names` says so.
  private static final Set<String> WITHOUT_TYPES =
      Set.of("TokenizersBackend", "PreTrainedTokenizerFast");

  /// Returns the folder of the model itself: the folder of the first module, or `root` if there
  /// are no modules.
  static Path transformer(Path root) {
    List<Module> modules = modules(root);
    return modules.isEmpty() ? root : modules.getFirst().folder();
  }

  /// Returns the folders of all modules; empty if there are no modules.
  static List<Path> folders(Path root) {
    return modules(root).stream().map(Module::folder).distinct().toList();
  }

  /// @param task the task of the transformer, such as `feature-extraction`
  /// @param output the name that newer files have for the transformer's output
  /// @throws dev.gantry.core.MalformedFileException if a file has an unknown key or value
  static SentenceFolder read(Path root, String task, String output) {
    List<Module> modules = modules(root);
    HubConfig transformer =
        HubConfig.optional(transformer(root).resolve("sentence_bert_config.json"));
    transformer.must("transformer_task", task);
    transformer.ignore("module_output_name");
    transformer
        .object("modality_config")
        .flatMap(modality -> modality.object("text"))
        .ifPresent(text -> {
          text.must("method", "forward");
          text.must("method_output_name", output);
        });
    int maxLength = transformer.whole("max_seq_length", 0, 1, Integer.MAX_VALUE);
    boolean lowerCase = transformer.flag("do_lower_case", false);
    transformer.requireAllRead(Set.of("unpad_inputs"));
    HubConfig settings = HubConfig.optional(root.resolve("config_sentence_transformers.json"));
    SentenceFolder read =
        new SentenceFolder(
            modules.isEmpty() ? modules : modules.subList(1, modules.size()),
            maxLength,
            lowerCase,
            settings.texts("prompts"),
            settings.word("default_prompt_name", ""),
            settings.choice("similarity_fn_name", "cosine", SIMILARITIES),
            settings,
            settings.whole("truncate_dim", 0, 1, WIDEST));
    settings.ignore(SCORES);
    settings.requireAllRead(Set.of("__version__", "model_type"));
    if (!read.defaultPrompt.isEmpty() && !read.prompts.containsKey(read.defaultPrompt)) {
      throw settings.refuse("default_prompt_name", "it must be one of 'prompts'");
    }
    return read;
  }

  private static List<Module> modules(Path root) {
    Path file = root.resolve("modules.json");
    if (!Files.exists(file)) {
      return List.of();
    }
    List<Module> modules = new ArrayList<>();
    for (HubConfig each : HubConfig.readList(file)) {
      String type = each.word("type", "");
      String kind = type.substring(type.lastIndexOf('.') + 1);
      if (!type.startsWith("sentence_transformers.")
          || !KINDS.contains(kind)
          || kind.equals(TRANSFORMER) != modules.isEmpty()) {
        throw each.refuse(
            "type",
            "it must be sentence_transformers' Transformer, which comes first, or its Pooling,"
                + " Dense or Normalize");
      }
      Path folder = root.resolve(each.word("path", "")).normalize();
      if (!folder.startsWith(root.normalize())) {
        throw each.refuse("path", "it must lie in the folder");
      }
      each.requireAllRead(Set.of("idx", "name"));
      modules.add(new Module(kind, folder));
    }
    return modules;
  }

  /// Opens the tokenizer beside the model. It cuts texts off at the length that the options or the
  /// files say, and at most at the model's length.
  ///
  /// @param block the model's block
  /// @throws MisuseException if there is no tokenizer
  TextTokenizer tokenizer(HubModel hub, Block block, TextOptions options) {
    HubConfig config = HubConfig.optional(hub.folder().resolve("tokenizer_config.json"));
    config.must("truncation_side", "right");
    double usual = config.positive("model_max_length", Integer.MAX_VALUE);
    int asked = options.maxLength() > 0 ? options.maxLength() : maxLength;
    int most =
        block instanceof TextBlock text ? text.text().positions().longest() : Integer.MAX_VALUE;
    int longest = (int) Math.min(asked > 0 ? asked : usual, most);
    List<String> inputs = config.words("model_input_names");
    boolean typed =
        inputs.isEmpty()
            ? !WITHOUT_TYPES.contains(config.word("tokenizer_class", ""))
            : inputs.contains(TYPES);
    long types =
        hub.inputs().stream()
            .filter(input -> typed && input.name().equals(TYPES))
            .mapToLong(HubModel.Input::bound)
            .findFirst()
            .orElse(0);
    return TextTokenizer.open(
        hub.folder(),
        new TextTokenizer.Settings(
            longest, lowerCase, config.token("pad_token"), hub.inputs().getFirst().bound(), types));
  }

  /// Returns the text of a prompt.
  ///
  /// @param name the prompt's name; empty for no prompt
  String prompt(String name) {
    String prompt = name.isEmpty() ? "" : prompts.get(name);
    if (prompt == null) {
      throw new MisuseException(
          prompts.isEmpty()
              ? "the prompt must be empty: the folder has none (was '%s')".formatted(name)
              : "the prompt must be one of the folder's, %s (was '%s')"
                  .formatted(String.join(", ", new TreeSet<>(prompts.keySet())), name));
    }
    return prompt;
  }

  /// Returns how hidden states become a vector. Without modules, it is their mean, or for a
  /// decoder, the state of the last token.
  ///
  /// @throws dev.gantry.core.MisuseException if the modules have no pooling
  Pooled pooled(boolean decoder) {
    if (modules.isEmpty()) {
      return new Pooled(List.of(decoder ? Pooling.LASTTOKEN : Pooling.MEAN), true);
    }
    requireKinds(POOLING.equals(modules.getFirst().kind()), "a Pooling behind the Transformer");
    HubConfig config = modules.getFirst().config();
    Map<String, Pooling> words =
        Stream.of(Pooling.values()).collect(Collectors.toMap(mode -> mode.word, mode -> mode));
    List<Pooling> modes = config.choices("pooling_mode", words);
    List<Pooling> older =
        Stream.of(Pooling.values())
            .filter(mode -> config.flag("pooling_mode_" + mode.flag, false))
            .toList();
    if (modes.isEmpty()) {
      modes = older.isEmpty() ? List.of(Pooling.MEAN) : older;
    }
    boolean prompt = config.flag("include_prompt", true);
    config.requireAllRead(Set.of("word_embedding_dimension", "embedding_dimension"));
    return new Pooled(modes, prompt);
  }

  /// Returns the steps that are applied to the vectors after the pooling, each from and to FLOAT32
  /// `[batch, width]`.
  ///
  /// @param manager owns the weights of dense layers
  List<UnaryOperator<NDArray>> steps(NDManager manager) {
    List<UnaryOperator<NDArray>> steps = new ArrayList<>();
    for (Module module : modules.subList(Math.min(1, modules.size()), modules.size())) {
      HubConfig config = module.config();
      config.must("module_input_name", VECTOR);
      config.must("module_output_name", VECTOR);
      requireKinds(!module.kind().equals(POOLING), "one Pooling");
      steps.add(
          module.kind().equals(DENSE)
              ? dense(module.folder(), config, manager)
              : vectors -> vectors.normalize(2, -1));
      config.requireAllRead(Set.of());
    }
    if (size > 0) {
      steps.add(vectors -> vectors.get(new NDIndex(":, :{}", size)));
    }
    return steps;
  }

  private static UnaryOperator<NDArray> dense(Path folder, HubConfig config, NDManager manager) {
    int inputs = config.whole("in_features", 1, WIDEST);
    int outputs = config.whole("out_features", 1, WIDEST);
    config.must("use_residual", "false");
    UnaryOperator<NDArray> activation = function(config, "activation_function", "torch.nn.Tanh");
    try (Weights weights = Weights.open(folder)) {
      LoadOptions options = LoadOptions.builder().optCast(DataType.FLOAT32).build();
      NDList loaded = weights.load(manager, options);
      NDArray weight = loaded.get("linear.weight");
      NDArray bias = loaded.get("linear.bias");
      if (weight == null
          || !weight.getShape().equals(new Shape(outputs, inputs))
          || (bias != null) != config.flag("bias", true)
          || (bias != null && !bias.getShape().equals(new Shape(outputs)))) {
        throw config.refuse("out_features", "the tensors linear.weight and linear.bias do not fit");
      }
      return vectors -> activation.apply(OperatorArrays.linear(vectors, weight, bias));
    }
  }

  private static void requireKinds(boolean right, String needed) {
    if (!right) {
      throw new MisuseException("modules.json must have " + needed + " for vectors of texts");
    }
  }

  /// Returns the function that is applied to the scores of pairs: the function that the files
  /// name, or else the sigmoid if there is a single score.
  UnaryOperator<NDArray> scores(HubModel hub) {
    HubConfig model = hub.config();
    String otherwise = hub.labels().size() == 1 ? "torch.nn.Sigmoid" : "torch.nn.Identity";
    HubConfig inner = model.object("sentence_transformers").orElseGet(HubConfig::empty);
    if (settings.has(SCORES)) {
      return function(settings, SCORES, otherwise);
    }
    return inner.has(SCORES)
        ? function(inner, SCORES, otherwise)
        : function(model, "sbert_ce_default_activation_function", otherwise);
  }

  /// @throws MisuseException if a module follows the transformer
  void requireNoModules() {
    if (!modules.isEmpty()) {
      throw new MisuseException("modules.json must have a Transformer alone for scores of texts");
    }
  }

  private static UnaryOperator<NDArray> function(HubConfig config, String key, String otherwise) {
    String name = config.word(key, otherwise);
    UnaryOperator<NDArray> known = FUNCTIONS.get(name.substring(name.lastIndexOf('.') + 1));
    if (known == null || !name.startsWith("torch.nn.")) {
      throw config.refuse(
          key,
          "it must be one of torch.nn: " + String.join(", ", new TreeSet<>(FUNCTIONS.keySet())));
    }
    return known;
  }
}
