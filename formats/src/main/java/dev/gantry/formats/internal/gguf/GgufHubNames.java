// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Renames the tensors of a GGUF file to the names in the hub's files, and reorders their rows
/// into the hub's order.
///
/// For the architecture `llama`, the GGUF writer interleaves the two halves of each query and key
/// head, since llama.cpp rotates neighbouring elements together, while the hub's code rotates one
/// element of each half. This class restores the hub's order. It moves whole rows of bytes, so it
/// works for quantised tensors, too.
public final class GgufHubNames {
  public static final String ARCHITECTURE = "general.architecture";

  /// The architectures whose tensors have the same values as in the hub's files.
  private static final Set<String> KNOWN = Set.of("llama", "qwen2", "qwen3");

  /// The architectures for which the GGUF writer interleaves the halves of heads.
  private static final Set<String> INTERLEAVED = Set.of("llama");

  private static final Map<String, String> WHOLE =
      Map.of(
          "token_embd", "model.embed_tokens",
          "output_norm", "model.norm",
          "output", "lm_head");

  private static final Map<String, String> IN_LAYER =
      Map.ofEntries(
          Map.entry("attn_norm", "input_layernorm"),
          Map.entry("attn_q", "self_attn.q_proj"),
          Map.entry("attn_k", "self_attn.k_proj"),
          Map.entry("attn_v", "self_attn.v_proj"),
          Map.entry("attn_output", "self_attn.o_proj"),
          Map.entry("attn_q_norm", "self_attn.q_norm"),
          Map.entry("attn_k_norm", "self_attn.k_norm"),
          Map.entry("ffn_norm", "post_attention_layernorm"),
          Map.entry("ffn_gate", "mlp.gate_proj"),
          Map.entry("ffn_up", "mlp.up_proj"),
          Map.entry("ffn_down", "mlp.down_proj"));

  private static final Pattern NAME =
      Pattern.compile("(?:blk\\.([0-9]{1,6})\\.)?([a-z_]+)\\.(weight|bias)");

  private GgufHubNames() {}

  /// Returns the catalogue with the hub's names. Tensors that the hub's files lack keep their
  /// names, and so do all tensors of other architectures.
  public static WeightsCatalogue of(WeightsCatalogue weights) {
    String architecture = weights.metadata().getOrDefault(ARCHITECTURE, "");
    if (!weights.format().equals(GgufFormat.CATALOGUE) || !KNOWN.contains(architecture)) {
      return weights;
    }
    List<StoredTensor> stored = new ArrayList<>();
    List<StoredTensor> values = new ArrayList<>();
    for (StoredTensor tensor : weights.quantised().values()) {
      StoredTensor named = named(weights, architecture, tensor);
      values.add(named);
      stored.add(stored(Objects.requireNonNull(weights.tensors().get(tensor.name())), named));
    }
    return new WeightsCatalogue(
        weights.format(), weights.files(), stored, weights.metadata(), weights.checksums(), values);
  }

  /// Returns the stored tensor under a value's name, with its rows in the value's order.
  private static StoredTensor stored(StoredTensor tensor, StoredTensor value) {
    return value.encoding() instanceof Encoding.Quantised quantised
        ? new StoredTensor(
            value.name(),
            tensor.dtype(),
            tensor.shape(),
            tensor.extent(),
            quantised.inputs().getFirst().tensor().encoding())
        : value;
  }

  /// Returns the hub's name of a tensor.
  static Optional<String> hubName(String name) {
    Matcher parts = NAME.matcher(name);
    if (!parts.matches()) {
      return Optional.empty();
    }
    String layer = parts.group(1);
    String hub = (layer == null ? WHOLE : IN_LAYER).get(parts.group(2));
    return Optional.ofNullable(hub)
        .map(found ->
            (layer == null ? found : "model.layers." + layer + "." + found) + "." + parts.group(3));
  }

  private static StoredTensor named(
      WeightsCatalogue weights, String architecture, StoredTensor tensor) {
    Optional<String> hub =
        hubName(tensor.name()).filter(name -> !weights.tensors().containsKey(name));
    if (hub.isEmpty()) {
      return tensor;
    }
    String name = hub.get();
    boolean queries = name.contains(".q_proj.");
    if (!INTERLEAVED.contains(architecture) || !(queries || name.contains(".k_proj."))) {
      return renamed(tensor, name);
    }
    Map<String, String> notes = weights.metadata();
    String heads = notes.getOrDefault(architecture + ".attention.head_count", "");
    String count =
        queries ? heads : notes.getOrDefault(architecture + ".attention.head_count_kv", heads);
    return count.matches("[1-9][0-9]{0,3}")
        ? separated(renamed(tensor, name), Integer.parseInt(count)).orElse(tensor)
        : tensor;
  }

  private static StoredTensor renamed(StoredTensor tensor, String name) {
    Encoding encoding =
        tensor.encoding() instanceof Encoding.Quantised quantised
            ? of(quantised, renamed(quantised.inputs().getFirst().tensor(), name))
            : tensor.encoding();
    return with(tensor, name, encoding);
  }

  private static StoredTensor with(StoredTensor tensor, String name, Encoding encoding) {
    return new StoredTensor(name, tensor.dtype(), tensor.shape(), tensor.extent(), encoding);
  }

  private static Encoding of(Encoding.Quantised quantised, StoredTensor blocks) {
    QuantisedInput input = new QuantisedInput(blocks, quantised.inputs().getFirst().axes());
    return new Encoding.Quantised(
        quantised.layout(),
        quantised.formula(),
        List.of(input),
        quantised.parameters(),
        quantised.rowAxis());
  }

  /// Puts the rows of each head into the hub's order: first the rows with even numbers, then the
  /// rows with odd numbers. Returns empty if the tensor has no such heads.
  private static Optional<StoredTensor> separated(StoredTensor tensor, int heads) {
    if (tensor.encoding() instanceof Encoding.Quantised quantised) {
      return separated(quantised.inputs().getFirst().tensor(), heads)
          .map(blocks -> with(tensor, tensor.name(), of(quantised, blocks)));
    }
    long rows = tensor.shape().rank() == 0 ? 0 : tensor.shape().dimension(0);
    if (tensor.bytes() == 0 || rows % (2L * heads) != 0 || !tensor.isPlain()) {
      return Optional.empty();
    }
    long half = rows / heads / 2;
    long width = tensor.bytes() / rows;
    List<Copy2D> copies = new ArrayList<>();
    for (long head = 0; head < heads; head++) {
      for (long part = 0; part < 2; part++) {
        long source = (head * 2 * half + part) * width;
        long target = (head * 2 + part) * half * width;
        copies.add(new Copy2D(source, 2 * width, target, width, width, half));
      }
    }
    return Optional.of(with(tensor, tensor.name(), new Encoding.Sliced(copies)));
  }
}
