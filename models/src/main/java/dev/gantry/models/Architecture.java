// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.djl.ParameterNames;
import dev.gantry.models.HubModel.Input;
import dev.gantry.models.internal.blocks.Description;
import dev.gantry.models.internal.blocks.Description.Labels;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Tokens;
import dev.gantry.models.internal.blocks.Design;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// The architecture that a folder's `config.json` describes.
///
/// @param design the settings of `config.json` that decide how the block computes; equal designs
///     make blocks that answer alike
/// @param labels the names of the classes; empty if the model does not classify
/// @param ends the ids of the tokens that end a text
/// @param shapes the input shapes of a smallest batch, which initialise the block
record Architecture(
    String name,
    Design design,
    ParameterNames names,
    List<Input> inputs,
    List<String> outputs,
    List<String> labels,
    List<Integer> ends,
    List<Shape> shapes) {
  /// The kinds of scores that have one number for each of the configuration's labels.
  private static final Set<String> LABELS = Set.of("labels", "tokenLabels");

  private static final int MAX_LABELS = 1 << 20;

  /// Keys of `config.json` that change no answer of a model here. They describe the file, the
  /// training, the tokens, how text is generated, or further results of the library that writes
  /// these files.
  static final Set<String> HARMLESS = Set.copyOf(ResourceLines.of("harmless-keys.txt"));

  /// The model types that consist of a model of texts and a model of images.
  static final Set<String> TWO = Set.of("clip", "siglip");

  /// @throws dev.gantry.core.MalformedFileException if the architecture in `config.json` is not
  ///     known, or the file contradicts itself
  static Architecture of(HubFolder folder) {
    HubConfig config = folder.config();
    if (TWO.contains(config.word("model_type", ""))) {
      throw config.refuse(
          "model_type", "it is two models: HubModel.of(folder, Tower.TEXT), or Tower.IMAGE");
    }
    Facts facts = new Facts(config, config.choice("model_type", Facts.FAMILIES));
    Draft draft = new Draft(folder, facts);
    String name = name(facts);
    List<Output> outputs = draft.outputs(name.substring(facts.text("base").length()));
    boolean labelled =
        outputs.stream()
            .anyMatch(output ->
                output.scores() instanceof Labels(String of, _, _, _) && LABELS.contains(of));
    List<String> labels = labelled ? labels(config) : List.of();
    Design design = draft.design(outputs, labels.size());
    config.must("is_encoder_decoder", "false");
    config.requireAllRead(HARMLESS);
    return new Architecture(
        name,
        design,
        draft.names(design, outputs),
        inputs(design),
        outputs.stream().flatMap(output -> output.names().stream()).toList(),
        labels,
        facts.is("causal") ? folder.ends() : List.of(),
        shapes(design, facts));
  }

  private static List<Input> inputs(Design design) {
    if (!(design instanceof Description description
        && description.embedding() instanceof Tokens tokens)) {
      return List.of(new Input("pixel_values", DataType.FLOAT32, 0, true));
    }
    return Stream.of(
            new Input("input_ids", DataType.INT64, tokens.vocabulary(), true),
            new Input("attention_mask", DataType.INT64, 2, false),
            new Input("token_type_ids", DataType.INT64, tokens.types(), false))
        .limit(tokens.types() == 0 ? 2 : 3)
        .toList();
  }

  private static List<Shape> shapes(Design design, Facts facts) {
    List<Input> inputs = inputs(design);
    int side = facts.whole("embedding.size");
    return inputs.size() == 1
        ? List.of(new Shape(1, facts.whole("embedding.channels"), side, side))
        : Collections.nCopies(inputs.size() == 2 ? 1 : 3, new Shape(1, 1));
  }

  /// The class that `architectures` names first, or the family's usual one if it names none.
  private static String name(Facts facts) {
    Set<String> known =
        Facts.lines(facts.text("classes"))
            .map(line -> facts.text("base") + line.split(" ", -1)[1])
            .collect(Collectors.toCollection(TreeSet::new));
    List<String> named = facts.config().words("architectures");
    String name = named.isEmpty() ? facts.text("base") + facts.text("usual") : named.getFirst();
    if (!known.contains(name)) {
      throw facts
          .config()
          .refuse(
              "architectures",
              "'" + name + "' is not known; the known ones are " + String.join(", ", known));
    }
    return name;
  }

  /// Returns the names of the classes. Without an `id2label`, they are the names that the
  /// reference library generates: `LABEL_0`, `LABEL_1` and so on, two unless the file says how
  /// many.
  static List<String> labels(HubConfig config) {
    Map<String, String> named = config.texts("id2label");
    int count = config.whole("num_labels", named.isEmpty() ? 2 : named.size(), 1, MAX_LABELS);
    // Names of another number of classes are of another model: the reference drops them.
    Map<String, String> fitting = named.size() == count ? named : Map.of();
    return IntStream.range(0, count)
        .mapToObj(i -> fitting.getOrDefault(String.valueOf(i), "LABEL_" + i))
        .toList();
  }
}
