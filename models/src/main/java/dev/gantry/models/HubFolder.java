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
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// The files beside a `config.json`. For one thread.
final class HubFolder {
  /// What follows the family's name in the names of models with a head.
  private static final Pattern HEAD = Pattern.compile("(For[A-Z]\\w*|LMHeadModel)$");

  private final Path path;
  private final Supplier<Weights> weights;
  private final HubConfig config;
  private final List<Float> stretches;
  private @Nullable Set<String> tensors;

  /// @param path where the files beside the weights are
  /// @param weights opens the weights
  /// @param stretches the factors by which each wave of a rotary embedding is stretched, where the files have them
  HubFolder(Path path, Supplier<Weights> weights, HubConfig config, List<Float> stretches) {
    this.path = path;
    this.weights = weights;
    this.config = config;
    this.stretches = stretches;
  }

  /// Reads what describes the model: a folder's `config.json`, or the notes of a GGUF file.
  ///
  /// @param path a folder, or a GGUF file
  /// @param weights opens the weights, which a folder may lack
  static HubFolder read(Path path, Supplier<Weights> weights) {
    return GgufHubConfig.find(GantrySession.shared(), path)
        .map(gguf ->
            new HubFolder(
                path,
                weights,
                HubConfig.of(gguf.files().getFirst(), GgufHubConfig.of(gguf)),
                GgufHubConfig.stretches(GantrySession.shared(), gguf)))
        .orElseGet(() -> {
          if (Files.isRegularFile(path)) {
            throw new MisuseException(
                "a model is a folder with config.json, or a GGUF file (was the file " + path + ")");
          }
          return new HubFolder(
              path, weights, HubConfig.read(path.resolve("config.json")), List.of());
        });
  }

  /// The same folder, read as the model without a head: `architectures` names the class that one head was put on, so
  /// that of `BertForMaskedLM` remains `BertModel`.
  HubFolder withoutHead() {
    List<String> bases =
        config.words("architectures").stream()
            .map(name -> HEAD.matcher(name).replaceFirst("Model"))
            .toList();
    return new HubFolder(path, weights, config.with("architectures", bases), stretches);
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
          own.with("projection_dim", config.count("projection_dim", 512, Facts.WIDEST))
              .with("architectures", List.of(name + "ModelWithProjection"));
    }
    return new HubFolder(path, weights, own, stretches);
  }

  List<Float> stretches() {
    return stretches;
  }

  HubConfig config() {
    return config;
  }

  /// Whether a model without a head has a pooler, by the names of its tensors: its configuration does not
  /// say.
  boolean hasPooler() {
    return tensors()
        .map(names -> names.stream().anyMatch(name -> name.endsWith("pooler.dense.weight")))
        .orElse(true);
  }

  /// Whether the embedding's weights give the scores: the configuration says so, and the files have no other
  /// weights for them. If they have, those count, as in the library that writes the files.
  boolean isTied(boolean usually, String head) {
    return config.flag("tie_word_embeddings", usually)
        && !tensors().map(names -> names.contains(head)).orElse(false);
  }

  /// The names of the tensors, read once; empty where the files cannot be opened: a load says what is wrong with
  /// them.
  private Optional<Set<String>> tensors() {
    if (tensors == null) {
      try (Weights opened = weights.get()) {
        tensors = opened.hubNames().tensors().keySet();
      } catch (MalformedFileException | TransferException _) {
        return Optional.empty();
      }
    }
    return Optional.of(tensors);
  }

  /// The tokens that end a text: `generation_config.json` names them where there is one, and otherwise the
  /// configuration.
  List<Integer> ends() {
    List<Integer> ends = config.wholes("eos_token_id", 0, Facts.MAX_TOKENS);
    Path generation = path.resolve("generation_config.json");
    return Files.exists(generation)
        ? HubConfig.read(generation).wholes("eos_token_id", 0, Facts.MAX_TOKENS)
        : ends;
  }
}
