// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GgufHubNamesTest {
  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({
    "token_embd.weight, model.embed_tokens.weight",
    "output_norm.weight, model.norm.weight",
    "output.weight, lm_head.weight",
    "blk.0.attn_norm.weight, model.layers.0.input_layernorm.weight",
    "blk.31.attn_q.weight, model.layers.31.self_attn.q_proj.weight",
    "blk.1.attn_k.bias, model.layers.1.self_attn.k_proj.bias",
    "blk.1.attn_v.weight, model.layers.1.self_attn.v_proj.weight",
    "blk.1.attn_output.weight, model.layers.1.self_attn.o_proj.weight",
    "blk.1.attn_q_norm.weight, model.layers.1.self_attn.q_norm.weight",
    "blk.1.ffn_norm.weight, model.layers.1.post_attention_layernorm.weight",
    "blk.1.ffn_gate.weight, model.layers.1.mlp.gate_proj.weight",
    "blk.1.ffn_up.weight, model.layers.1.mlp.up_proj.weight",
    "blk.1.ffn_down.weight, model.layers.1.mlp.down_proj.weight",
    "blk.1.ffn_gate_exps.weight,",
    "rope_freqs.weight,",
    "blk.0.Q4_0,",
    "output.0.weight,"
  })
  void tensorsHaveTheHubsNames(String name, String hub) {
    assertThat(GgufHubNames.hubName(name).orElse(null)).isEqualTo(hub);
  }

  private WeightsCatalogue named(HandmadeGguf gguf) throws IOException {
    Path file = Files.write(folder.resolve("m.gguf"), gguf.bytes());
    return GgufHubNames.of(WeightsFormats.open(GantrySession.shared(), Location.of(file)));
  }

  private static HandmadeGguf gguf(String architecture, int heads) {
    return new HandmadeGguf()
        .note("general.architecture", 8, HandmadeGguf.text(architecture))
        .note(architecture + ".attention.head_count", 4, HandmadeGguf.number(heads, 4))
        .tensor("blk.0.attn_q.weight", 24, new byte[] {1, 2, 5, 6, 3, 4, 7, 8}, 2, 4)
        .tensor("blk.0.attn_k.weight", 24, new byte[] {1, 3, 2, 4}, 1, 4)
        .tensor("other", 24, new byte[] {9}, 1);
  }

  @Test
  void theRowsOfQueriesAndKeysGoBackToTheHubsOrder() throws IOException {
    WeightsCatalogue weights = named(gguf("llama", 1));
    assertThat(weights.tensors().keySet())
        .containsExactly(
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.0.self_attn.k_proj.weight",
            "other");
    assertThat(TensorValues.bytes(weights.tensors().get("model.layers.0.self_attn.q_proj.weight")))
        .containsExactly(1, 2, 3, 4, 5, 6, 7, 8);
    assertThat(TensorValues.bytes(weights.tensors().get("model.layers.0.self_attn.k_proj.weight")))
        .containsExactly(1, 2, 3, 4);
    WeightsCatalogue twoHeads = named(gguf("llama", 2));
    assertThat(TensorValues.bytes(twoHeads.tensors().get("model.layers.0.self_attn.k_proj.weight")))
        .containsExactly(1, 3, 2, 4);
  }

  @Test
  void otherArchitecturesKeepTheirRowsOrTheirNames() throws IOException {
    assertThat(
            TensorValues.bytes(
                named(gguf("qwen2", 1)).tensors().get("model.layers.0.self_attn.k_proj.weight")))
        .containsExactly(1, 3, 2, 4);
    assertThat(named(gguf("gemma", 1)).tensors()).containsKey("blk.0.attn_k.weight");
    assertThat(named(gguf("llama", 3)).tensors()).containsKey("blk.0.attn_k.weight");
  }
}
