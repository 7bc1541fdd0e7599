// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Folders that the reference library wrote answer as it does.
class HubModelTest extends HubModelFixture {
  @ParameterizedTest
  @MethodSource("folders")
  void aFolderAnswersAsTheReferenceDoes(String name) throws IOException, TranslateException {
    HubModel hub = hub(name);
    try (Model model = hub.load(Device.fromName(""), DEFAULTS)) {
      reference(name).requireAnsweredBy(hub, model);
      if (Files.exists(HUB.resolve(name).resolve(PADDED_LEFT))) {
        Reference.of(HUB.resolve(name), PADDED_LEFT).requireAnsweredBy(hub, model);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("folders")
  void theOutputsHaveTheShapesThatTheBlockSays(String name) throws IOException {
    HubModel hub = hub(name);
    Reference reference = reference(name);
    Shape[] inputs =
        reference.inputs().values().stream().map(Reference.Values::shape).toArray(Shape[]::new);
    try (Model model = hub.load(Device.fromName(""), DEFAULTS)) {
      assertThat(model.getBlock().getOutputShapes(inputs))
          .containsExactlyElementsOf(
              reference.outputs().values().stream().map(Reference.Values::shape).toList());
    }
  }

  /// DJL's native code would end the process on BFLOAT16.
  @ParameterizedTest
  @MethodSource("folders")
  void halfPrecisionAnswersNearly(String name) throws IOException, TranslateException {
    for (DataType type : List.of(DataType.BFLOAT16, DataType.FLOAT16)) {
      HubModel hub = hub(name);
      LoadOptions options = LoadOptions.builder().optCast(type).build();
      try (Model model = hub.load(Device.fromName(""), options)) {
        reference(name).requireAnsweredBy(hub, model, 0.15);
      }
    }
  }

  /// Names and leftovers of files that older versions of the library wrote.
  static List<Arguments> oldFiles() {
    return List.of(
        Arguments.of("bert", "^", "bert.", "embeddings.position_ids"),
        Arguments.of("bert", "LayerNorm.weight", "LayerNorm.gamma", "cls.seq_relationship.bias"),
        Arguments.of(
            "bert-mlm-untied", "LayerNorm.bias", "LayerNorm.beta", "bert.pooler.dense.bias"),
        Arguments.of(
            "bert-mlm-untied", "^bert\\.(.*LayerNorm).weight", "bert.$1.gamma", "cls.x.bias"),
        Arguments.of("gpt2", "^transformer\\.", "", "h.0.attn.bias"),
        Arguments.of("gpt2", "^transformer\\.", "", "h.1.attn.masked_bias"),
        Arguments.of("llama", "none", "", "model.layers.0.self_attn.rotary_emb.inv_freq"),
        Arguments.of("vit", "none", "", "vit.pooler.dense.weight"),
        Arguments.of("resnet", "none", "", "resnet.x.num_batches_tracked"));
  }

  @ParameterizedTest
  @MethodSource
  void oldFiles(String name, String pattern, String replacement, String leftover)
      throws IOException, TranslateException {
    Path folder =
        changed(
            name,
            tensors -> {
              SequencedMap<String, NDArray> renamed = new LinkedHashMap<>();
              tensors.forEach(
                  (tensor, array) -> renamed.put(tensor.replaceFirst(pattern, replacement), array));
              tensors.clear();
              tensors.putAll(renamed);
              tensors.put(leftover, renamed.firstEntry().getValue().duplicate());
            });
    HubModel hub = HubModel.of(folder);
    try (Model model = hub.load(Device.fromName(""), DEFAULTS)) {
      reference(name).requireAnsweredBy(hub, model);
    }
  }

  /// The file holds the tensors of `bert` as PyTorch saves them.
  @Test
  void aFolderOfPickledTensorsAnswersToo() throws IOException, TranslateException {
    Files.copy(HUB.resolve("bert/config.json"), temporary.resolve("config.json"));
    Files.copy(
        HUB.resolveSibling("pickled/pytorch_model.bin"), temporary.resolve("pytorch_model.bin"));
    HubModel hub = HubModel.of(temporary);
    try (Model model = hub.load(Device.fromName(""), DEFAULTS)) {
      reference("bert").requireAnsweredBy(hub, model);
    }
  }

  @Test
  void inputsGoByName() {
    HubModel hub = hub("bert");
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray ids = manager.ones(new Shape(1, 3), DataType.INT64);
      NDArray mask = ids.duplicate();
      assertThat(hub.arranged(Map.of("input_ids", ids))).hasSize(1);
      assertThat(hub.arranged(Map.of("attention_mask", mask, "input_ids", ids)))
          .hasSize(2)
          .last()
          .isSameAs(mask);
      assertThatThrownBy(() -> hub.arranged(Map.of("attention_mask", mask)))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the input 'input_ids' is missing");
      assertThatThrownBy(() -> hub.arranged(Map.of("pixels", mask)))
          .hasMessageContaining("takes input_ids, attention_mask, token_type_ids");
    }
  }
}
