// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import dev.gantry.djl.ParameterNames;
import dev.gantry.models.Families.Family;
import dev.gantry.models.Families.Head;
import dev.gantry.models.HubModel.Input;
import dev.gantry.models.internal.blocks.Description;
import dev.gantry.models.internal.blocks.Description.Labels;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Tokens;
import dev.gantry.models.internal.blocks.TextBlock;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;
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
  private static final int MAX_LABELS = 1 << 20;

  /// Keys of `config.json` that change no answer of a model here: they describe the file, its training, its tokens, how
  /// text is generated, or what else the library that writes these files returns.
  static final Set<String> HARMLESS = Set.copyOf(ResourceLines.of("harmless-keys.txt"));

  /// The types of models of texts and images.
  static final Set<String> TWO = Set.of("clip", "siglip");

  private static final Map<String, Function<HubFolder, Architecture>> BY_TYPE = byType();

  private static Map<String, Function<HubFolder, Architecture>> byType() {
    Map<String, Function<HubFolder, Architecture>> known = new TreeMap<>();
    Families.KNOWN.forEach((type, family) -> known.put(type, folder -> text(folder, family)));
    known.put("clip_vision_model", ImageFamilies::clip);
    known.put("convnext", ImageFamilies::convnext);
    known.put("deit", ImageFamilies::deit);
    known.put("dinov2", ImageFamilies::dinov2);
    known.put("resnet", ImageFamilies::resnet);
    known.put("siglip_vision_model", ImageFamilies::siglip);
    known.put("vit", ImageFamilies::vit);
    return known;
  }

  /// @throws dev.gantry.core.MalformedFileException if `config.json` is of no known architecture, or
  ///     contradicts itself
  static Architecture of(HubFolder folder) {
    HubConfig config = folder.config();
    if (TWO.contains(config.word("model_type", ""))) {
      throw config.refuse(
          "model_type", "it is two models: HubModel.of(folder, Tower.TEXT), or Tower.IMAGE");
    }
    Architecture described = config.choice("model_type", BY_TYPE).apply(folder);
    config.requireOff("is_encoder_decoder");
    config.requireAllRead(HARMLESS);
    return described;
  }

  /// The class that `architectures` names first, or `usual` if it names none.
  static String chosen(HubConfig config, String usual, Set<String> known) {
    List<String> named = config.words("architectures");
    String name = named.isEmpty() ? usual : named.getFirst();
    if (!known.contains(name)) {
      throw config.refuse(
          "architectures",
          "'"
              + name
              + "' is not known; known are "
              + known.stream().sorted().collect(Collectors.joining(", ")));
    }
    return name;
  }

  private static Architecture text(HubFolder folder, Family family) {
    HubConfig config = folder.config();
    Map<String, Head> heads = new TreeMap<>();
    family.heads().forEach((end, head) -> heads.put(family.base() + end, head));
    String name = chosen(config, family.base() + family.usual(), heads.keySet());
    Draft draft = new Draft(folder);
    family.reads().accept(draft);
    Head head = Objects.requireNonNull(heads.get(name));
    List<String> labels = hasLabels(head) ? labels(config) : List.of();
    Description description = draft.description(outputs(draft, head, labels.size()));
    Tokens tokens = (Tokens) description.embedding();
    Stream<Input> inputs =
        Stream.of(
            new Input("input_ids", DataType.INT64, tokens.vocabulary(), true),
            new Input("attention_mask", DataType.INT64, 2, false),
            new Input("token_type_ids", DataType.INT64, tokens.types(), false));
    return new Architecture(
        name,
        description,
        () -> TextBlock.of(description, tokens),
        draft.names(family.names(), description),
        inputs.limit(tokens.types() == 0 ? 2 : 3).toList(),
        names(description),
        labels,
        description.causal() ? folder.ends() : List.of(),
        Collections.nCopies(tokens.types() == 0 ? 1 : 3, new Shape(1, 1)));
  }

  /// The names of a description's outputs.
  static List<String> names(Description description) {
    return description.outputs().stream().flatMap(output -> output.names().stream()).toList();
  }

  private static boolean hasLabels(Head head) {
    return switch (head) {
      case SEQUENCE, TOKENS -> true;
      case MODEL, CAUSAL, MASKED, SPANS, PRETRAINING, NEXT_SENTENCE, PROJECTION -> false;
    };
  }

  private static List<Output> outputs(Draft draft, Head head, int labels) {
    return switch (head) {
      case MODEL ->
          draft.summary != null
              ? List.of(draft.states(), draft.summary)
              : draft.pooler != null && draft.folder.hasPooler()
                  ? List.of(draft.states(), draft.pooled())
                  : List.of(draft.states());
      case CAUSAL, MASKED -> List.of(draft.scores("logits"));
      case SEQUENCE -> List.of(draft.labels(labels));
      case TOKENS ->
          List.of(
              draft.eachToken(List.of("logits"), new Labels("tokenLabels", labels, true, false)));
      case SPANS ->
          List.of(
              draft.eachToken(
                  List.of("start_logits", "end_logits"), new Labels("spans", 2, true, false)));
      case NEXT_SENTENCE -> List.of(draft.relation("logits"));
      case PROJECTION -> List.of(Objects.requireNonNull(draft.summary), draft.states());
      case PRETRAINING ->
          draft.pooler == null
              ? List.of(draft.replaced())
              : List.of(
                  draft.scores("prediction_logits"), draft.relation("seq_relationship_logits"));
    };
  }

  /// The names of the classes. Where `id2label` is missing, they are the names that the library itself makes
  /// up, usually two: `LABEL_0` and so on.
  static List<String> labels(HubConfig config) {
    Map<String, String> named = config.texts("id2label");
    int count = config.count("num_labels", named.isEmpty() ? 2 : named.size(), MAX_LABELS);
    return IntStream.range(0, count)
        .mapToObj(i -> named.getOrDefault(String.valueOf(i), "LABEL_" + i))
        .toList();
  }
}
