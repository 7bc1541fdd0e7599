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

/// A model's description: its `config.json`, and the files beside it. For one thread.
///
/// @param stretches the factors by which each wave of a rotary embedding is stretched, where the files have them
record HubFolder(FetchedModel files, HubConfig config, List<Float> stretches) {
  /// The suffix that the class names of models with a head have behind the family's name.
  private static final Pattern HEAD = Pattern.compile("(For[A-Z]\\w*|LMHeadModel)$");

  /// Reads a folder's `config.json`, or the notes of a GGUF file.
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

  /// The same folder, read as the model without a head: `architectures` names the class that one head was put on, so
  /// that of `BertForMaskedLM` remains `BertModel`.
  HubFolder withoutHead() {
    List<String> bases =
        config.words("architectures").stream()
            .map(name -> HEAD.matcher(name).replaceFirst("Model"))
            .toList();
    return new HubFolder(files, config.with("architectures", bases), stretches);
  }

  /// The same folder, read as one of the two models that its configuration describes.
  ///
  /// @throws MalformedFileException if it describes other than two
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

  /// The names of the tensors; none where the files cannot be opened: a load says what is wrong with them.
  Set<String> tensors() {
    try (Weights opened = files.weights().get()) {
      return opened.hubNames().tensors().keySet();
    } catch (MalformedFileException | TransferException _) {
      return Set.of();
    }
  }

  /// The tokens that end a text: `generation_config.json` names them where there is one, and otherwise the
  /// configuration.
  List<Integer> ends() {
    List<Integer> ends = config.wholes("eos_token_id", 0, Facts.MAX_TOKENS);
    Path generation = files.path().resolve("generation_config.json");
    return Files.exists(generation)
        ? HubConfig.read(generation).wholes("eos_token_id", 0, Facts.MAX_TOKENS)
        : ends;
  }
}
