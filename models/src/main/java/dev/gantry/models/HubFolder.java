// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.Weights;
import dev.gantry.formats.internal.gguf.GgufHubConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/// A model's `config.json` and the files beside it. Not thread-safe.
///
/// @param stretches for each wave of a rotary embedding, the factor that divides its frequency;
///     empty if the files have no such factors
record HubFolder(FetchedModel files, HubConfig config, List<Float> stretches) {
  /// The suffix that a class name has after the family's name if the model has a head.
  private static final Pattern HEAD = Pattern.compile("(For[A-Z]\\w*|LMHeadModel)$");

  /// Reads a folder's `config.json`, or the metadata of a GGUF file.
  static HubFolder read(FetchedModel files) {
    Path path = files.path();
    return GgufHubConfig.find(GantrySession.shared(), path)
        .map(gguf ->
            new HubFolder(
                files,
                HubConfig.of(gguf.files().getFirst(), GgufHubConfig.of(gguf)),
                GgufHubConfig.stretches(GantrySession.shared(), gguf)))
        .orElseGet(() -> {
          if (Files.isRegularFile(path)) {
            throw new MisuseException(
                "a model is a folder with config.json, or a GGUF file (was the file " + path + ")");
          }
          return new HubFolder(files, HubConfig.read(path.resolve("config.json")), List.of());
        });
  }

  /// Returns the same folder, read as the model without a head. `architectures` names the class
  /// with the head, such as `BertForMaskedLM`; without the head, that is `BertModel`.
  HubFolder withoutHead() {
    List<String> bases =
        config.words("architectures").stream()
            .map(name -> HEAD.matcher(name).replaceFirst("Model"))
            .toList();
    return new HubFolder(files, config.with("architectures", bases), stretches);
  }

  /// Returns the same folder, read as one of the two models that its configuration describes.
  ///
  /// @throws MalformedFileException if the configuration does not describe two models
  HubFolder tower(HubModel.Tower tower) {
    String family = config.word("model_type", "");
    if (!Architecture.TWO.contains(family)) {
      throw config.refuse("model_type", "clip and siglip have towers");
    }
    Set<String> harmless = new HashSet<>(Architecture.HARMLESS);
    harmless.addAll(Facts.lines("towers").toList());
    config.requireAllRead(harmless);
    String word = tower == HubModel.Tower.TEXT ? "text" : "vision";
    config.need(word + "_config");
    HubConfig own =
        config
            .object(word + "_config")
            .orElseThrow()
            .with(config.object(word + "_config_dict").orElseGet(HubConfig::empty))
            .with("model_type", family + "_" + word + "_model");
    if (family.equals("clip")) {
      String name = tower == HubModel.Tower.TEXT ? "CLIPText" : "CLIPVision";
      own =
          own.with("projection_dim", (double) config.whole("projection_dim", 512, 1, Facts.WIDEST))
              .with("architectures", List.of(name + "ModelWithProjection"));
    }
    return new HubFolder(files, own, stretches);
  }

  /// Returns the names of the tensors. They are empty if the files cannot be opened; a later load
  /// reports why.
  Set<String> tensors() {
    try (Weights opened = files.weights().get()) {
      return opened.hubNames().tensors().keySet();
    } catch (MalformedFileException | TransferException _) {
      return Set.of();
    }
  }

  /// Returns the ids of the tokens that end a text, from `generation_config.json` if the folder
  /// has one, else from `config.json`.
  List<Integer> ends() {
    List<Integer> ends = config.wholes("eos_token_id", 0, Facts.MAX_TOKENS);
    Path generation = files.path().resolve("generation_config.json");
    return Files.exists(generation)
        ? HubConfig.read(generation).wholes("eos_token_id", 0, Facts.MAX_TOKENS)
        : ends;
  }
}
