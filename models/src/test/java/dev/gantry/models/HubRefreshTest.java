// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LiveWeights;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SequencedMap;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// New weights for models that are in use.
class HubRefreshTest extends HubModelFixture {
  /// All but FP8, which no writer here writes.
  static List<String> writable() throws IOException {
    return folders().stream().filter(name -> !name.startsWith("llama-fp8")).toList();
  }

  @Test
  void aModelIsRefreshedFromFp8AndBack() throws IOException, TranslateException {
    HubModel hub = hub("llama");
    try (Model model = hub.load(Device.fromName(""), DEFAULTS)) {
      hub("llama-fp8").refresh(model, DEFAULTS);
      reference("llama-fp8").requireAnsweredBy(hub, model);
      hub.refresh(model, DEFAULTS);
      reference("llama").requireAnsweredBy(hub, model);
    }
  }

  @ParameterizedTest
  @MethodSource("writable")
  void aRefreshInPlaceAnswersAsAFreshLoadDoes(String name) throws IOException, TranslateException {
    HubModel hub = hub(name);
    Reference reference = reference(name);
    Path folder = changed(name, tensors -> tensors.replaceAll((_, tensor) -> scaled(tensor)));
    HubModel other = HubModel.of(folder);
    try (Model model = hub.load(Device.fromName(""), DEFAULTS);
        Model fresh = other.load(Device.fromName(""), DEFAULTS)) {
      List<NDArray> before = arrays(model);

      assertThat(other.refresh(model, DEFAULTS).missing()).isEmpty();
      SequencedMap<String, float[]> answers = Reference.answers(hub, model, reference);
      Reference.answers(other, fresh, reference)
          // Two runs of one convolution differ by rounding on a GPU.
          .forEach((output, answer) ->
              assertThat(answers.get(output)).containsExactly(answer, Offset.offset(1e-5f)));

      hub.refresh(model, DEFAULTS);
      reference.requireAnsweredBy(hub, model);
      assertThat(arrays(model)).usingElementComparator((a, b) -> a == b ? 0 : 1).isEqualTo(before);
    }
  }

  /// The first has its head in the embedding, the second one of its own.
  @ParameterizedTest
  @CsvSource({"gpt2, gpt2-stored", "gpt2, gpt2-untied", "bert-mlm-tied, bert-mlm-stored"})
  void aRefreshAcrossTiedAndOwnHeadsIsRefused(String tied, String own)
      throws IOException, TranslateException {
    Path folder = HUB.resolve(tied);
    if (tied.equals("bert-mlm-tied")) {
      folder = changed(own, tensors -> tensors.remove("cls.predictions.decoder.weight"));
    }
    HubModel first = HubModel.of(folder);
    HubModel second = hub(own);
    LoadOptions partial = LoadOptions.builder().optPartial(true).build();
    for (LoadOptions options : List.of(DEFAULTS, partial)) {
      try (Model model = first.load(Device.fromName(""), options);
          Weights weights = Weights.open(HUB.resolve(own));
          LiveWeights live = LiveWeights.of(model.getBlock())) {
        // As the other folder says, and as this one said before its files were replaced.
        isRefused(() -> second.refresh(model, options), "does not describe the block");
        isRefused(
            () -> live.refresh(weights, first.names(), options),
            "' is refused: the block's scores");
        model.setBlock(live.block());
        if (folder.startsWith(HUB)) {
          reference(tied).requireAnsweredBy(first, model);
        }
      }
      try (Model model = second.load(Device.fromName(""), options)) {
        isRefused(() -> first.refresh(model, options), "does not describe the block");
        reference(own).requireAnsweredBy(second, model);
      }
    }
  }

  /// The tensors have the same names and shapes as before.
  @ParameterizedTest
  @CsvSource({
    "llama, '\"hidden_act\": \"silu\"', '\"hidden_act\": \"gelu\"'",
    "resnet, '\"hidden_act\": \"relu\"', '\"hidden_act\": \"gelu\"'",
    "vit, '\"num_attention_heads\": 4', '\"num_attention_heads\": 2'"
  })
  void aRefreshFromAnotherArchitectureIsRefused(String name, String right, String wrong)
      throws IOException, TranslateException {
    Path folder = changed(name, _ -> {});
    HubModel before = HubModel.of(folder);
    try (Model model = before.load(Device.fromName(""), DEFAULTS)) {
      before.refresh(model, DEFAULTS);
      Path config = folder.resolve("config.json");
      assertThat(Files.readString(config)).contains(right);
      Files.writeString(config, Files.readString(config).replace(right, wrong));

      for (HubModel hub : List.of(before, HubModel.of(folder))) {
        isRefused(
            () -> hub.refresh(model, DEFAULTS),
            config + " does not describe the block that the model has");
      }
      reference(name).requireAnsweredBy(before, model);
    }
  }

  private static void isRefused(ThrowingCallable refresh, String message) {
    assertThatThrownBy(refresh)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(message)
        .hasMessageNotContaining("\n");
  }

  private static List<NDArray> arrays(Model model) {
    return model.getBlock().getParameters().values().stream()
        .map(parameter -> parameter.getArray())
        .toList();
  }

  private static NDArray scaled(NDArray tensor) {
    return tensor.getDataType().isFloating() ? tensor.mul(0.75f) : tensor;
  }
}
