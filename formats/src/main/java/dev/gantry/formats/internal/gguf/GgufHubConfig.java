// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.internal.weights.TensorReading;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Makes the equivalent of a hub folder's `config.json` from a GGUF file's notes and tensors.
public final class GgufHubConfig {
  /// The only architecture of llama.cpp that Gantry has blocks for.
  private static final String LLAMA = "llama";

  /// The tensor of the factors that stretch the wavelengths of the rotary embedding.
  private static final String STRETCHES = "rope_freqs.weight";

  private static final int MAX_STRETCHES = 1 << 16;

  /// The hub's keys for notes; a note's own key begins with the architecture.
  private static final Map<String, String> KEYS =
      Map.ofEntries(
          Map.entry("vocab_size", "vocab_size"),
          Map.entry("context_length", "max_position_embeddings"),
          Map.entry("embedding_length", "hidden_size"),
          Map.entry("block_count", "num_hidden_layers"),
          Map.entry("feed_forward_length", "intermediate_size"),
          Map.entry("attention.head_count", "num_attention_heads"),
          Map.entry("attention.head_count_kv", "num_key_value_heads"),
          Map.entry("attention.key_length", "head_dim"),
          Map.entry("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
          Map.entry("rope.freq_base", "rope_theta"));

  /// The notes without which llama.cpp, too, refuses a file, since they have no default.
  private static final List<String> REQUIRED =
      List.of(
          "embedding_length",
          "block_count",
          "feed_forward_length",
          "attention.head_count",
          "attention.layer_norm_rms_epsilon");

  /// The notes that do not change a model's answers, or do not change them in Gantry.
  private static final Set<String> HARMLESS =
      Set.of(
          "rope.scaling.finetuned",
          "rope.scaling.original_context_length",
          "tensor_data_layout",
          "attention.causal");

  private static final String SCALING = "rope.scaling.type";
  private static final String FACTOR = "rope.scaling.factor";

  private final WeightsCatalogue weights;
  private final Location file;
  private final Map<String, Object> members = new LinkedHashMap<>();

  private GgufHubConfig(WeightsCatalogue weights) {
    this.weights = weights;
    this.file = weights.files().getFirst();
  }

  /// Opens the GGUF file that a path names, or that lies in the path's folder if the folder has
  /// no `config.json`; empty if there is no such file.
  public static Optional<WeightsCatalogue> find(GantrySession session, Path path) {
    Location location = Location.of(path);
    boolean named =
        Files.isDirectory(path)
            ? !Files.exists(path.resolve("config.json"))
                && Folder.at(session, location)
                    .filter(folder -> !folder.named(".gguf").isEmpty())
                    .isPresent()
            // The configuration beside weights is no weights itself.
            : Files.exists(path) && !location.fileName().endsWith(".json");
    return named
        ? Optional.of(GgufHubNames.of(WeightsFormats.open(session, location)))
            .filter(weights -> weights.format().equals(GgufFormat.CATALOGUE))
        : Optional.empty();
  }

  /// @param weights a GGUF file under the hub's names
  /// @throws MalformedFileException if Gantry does not know the architecture, or a note asks for
  ///     a computation that Gantry's blocks lack
  public static JsonTree of(WeightsCatalogue weights) {
    GgufHubConfig config = new GgufHubConfig(weights);
    config.read();
    return new JsonTree(config.members);
  }

  private void read() {
    Map<String, String> notes = weights.metadata();
    String architecture = notes.getOrDefault(GgufHubNames.ARCHITECTURE, "");
    if (!architecture.equals(LLAMA)) {
      throw refuse(
          GgufHubNames.ARCHITECTURE, "is '" + architecture + "'; known is only '" + LLAMA + "'");
    }
    members.put("model_type", LLAMA);
    notes.forEach((key, value) -> {
      if (key.startsWith(LLAMA + ".")) {
        note(key, key.substring(LLAMA.length() + 1), value);
      }
    });
    for (String required : REQUIRED) {
      if (!members.containsKey(KEYS.get(required))) {
        throw new MalformedFileException(
            file, 0, "missing-key", "there is no note '" + LLAMA + "." + required + "'");
      }
    }
    rotation(notes);
    requireHead("attention.value_length");
    requireHead("rope.dimension_count");
    Map<String, StoredTensor> tensors = weights.tensors();
    StoredTensor tokens = tensors.get("model.embed_tokens.weight");
    if (tokens != null && tokens.shape().rank() > 0) {
      members.putIfAbsent("vocab_size", (double) tokens.shape().dimension(0));
    }
    members.put("tie_word_embeddings", !tensors.containsKey("lm_head.weight"));
    members.put("attention_bias", tensors.containsKey("model.layers.0.self_attn.q_proj.bias"));
    members.put("mlp_bias", tensors.containsKey("model.layers.0.mlp.gate_proj.bias"));
    List<Object> ends = new ArrayList<>();
    for (String end : List.of("eos", "eot")) {
      String id = notes.get("tokenizer.ggml." + end + "_token_id");
      if (id != null) {
        ends.add(number(id));
      }
    }
    members.put("eos_token_id", ends);
  }

  private void note(String key, String name, String value) {
    String hub = KEYS.get(name);
    if (hub != null) {
      members.put(hub, number(value));
    } else if (name.startsWith("expert_")) {
      if (!value.equals("0")) {
        throw refuse(key, "is " + value + "; mixtures of experts are not supported");
      }
    } else if (!name.equals(SCALING) && !name.equals(FACTOR) && !HARMLESS.contains(name)) {
      // All other notes become members. A member that nobody reads is refused later, as in a
      // config.json.
      members.put(key, number(value));
    }
  }

  private void rotation(Map<String, String> notes) {
    String old = notes.get(LLAMA + ".rope.scale_linear");
    members.remove(LLAMA + ".rope.scale_linear");
    String type = notes.getOrDefault(LLAMA + "." + SCALING, old == null ? "none" : "linear");
    if (!type.equals("none")) {
      String factor = notes.getOrDefault(LLAMA + "." + FACTOR, old == null ? "1" : old);
      members.put(
          "rope_scaling", new JsonTree(Map.of("rope_type", type, "factor", number(factor))));
    }
  }

  /// Requires a note, if it exists, to equal the size of a head.
  private void requireHead(String name) {
    Object said = members.remove(LLAMA + "." + name);
    if (said == null) {
      return;
    }
    Object head = members.get("head_dim");
    if (head == null) {
      members.put("head_dim", said);
    } else if (!head.equals(said)) {
      throw refuse(
          LLAMA + "." + name,
          "is %s, and a head's size is %s".formatted(JsonTree.shown(said), JsonTree.shown(head)));
    }
  }

  /// Returns a note's value as a number if it is a number, and as text otherwise.
  private static Object number(String text) {
    try {
      return Double.valueOf(text);
    } catch (NumberFormatException _) {
      return text;
    }
  }

  /// Reads the factors that stretch the wavelengths of the rotary embedding, in the order of the
  /// frequencies; an empty list if the file has no such tensor.
  ///
  /// @param weights a GGUF file
  public static List<Float> stretches(GantrySession session, WeightsCatalogue weights) {
    StoredTensor tensor = weights.tensors().get(STRETCHES);
    if (tensor == null) {
      return List.of();
    }
    List<Float> stretches = new ArrayList<>();
    if (tensor.dtype() == DType.F32 && tensor.isPlain() && tensor.bytes() <= MAX_STRETCHES) {
      try (Arena arena = Arena.ofShared()) {
        MemorySegment memory = arena.allocate(Math.max(1, tensor.bytes()), Float.BYTES);
        TensorReading.read(session, tensor, memory.asSlice(0, tensor.bytes()));
        for (long i = 0; i < tensor.bytes() / Float.BYTES; i++) {
          stretches.add(memory.getAtIndex(ValueLayout.JAVA_FLOAT, i));
        }
      }
    }
    if (stretches.isEmpty() || stretches.stream().anyMatch(factor -> !(factor > 0))) {
      throw new MalformedFileException(
          tensor.extent().file(),
          tensor.extent().offset(),
          "invalid-value",
          "tensor '" + STRETCHES + "' must be numbers above 0, of type F32");
    }
    return stretches;
  }

  private MalformedFileException refuse(String key, String reason) {
    return new MalformedFileException(file, 0, "invalid-value", "the note '" + key + "' " + reason);
  }
}
