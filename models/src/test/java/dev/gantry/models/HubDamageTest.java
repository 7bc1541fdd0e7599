// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Folders that are damaged or are no whole model.
class HubDamageTest extends HubModelFixture {
  /// Before anything as large as the configuration says is made.
  @ParameterizedTest
  @CsvSource({
    "bert, '\"hidden_size\": 64', '\"hidden_size\": 1048576'",
    "gpt2, '\"vocab_size\": 216', '\"vocab_size\": 16777216'",
    "llama, '\"intermediate_size\": 160', '\"intermediate_size\": 1048576'",
    "resnet, '\"embedding_size\": 16', '\"embedding_size\": 1048576'",
    "vit, '\"image_size\": 32', '\"image_size\": 65536'"
  })
  void aGiantConfigurationFailsForItsTensors(String name, String right, String wrong)
      throws IOException {
    Path folder = changed(name, _ -> {});
    Path config = folder.resolve("config.json");
    assertThat(Files.readString(config)).contains(right);
    Files.writeString(config, Files.readString(config).replace(right, wrong));
    assertThatThrownBy(() -> HubModel.of(folder).load(Device.fromName(""), DEFAULTS))
        .isInstanceOf(MisuseException.class)
        .hasMessageMatching(".*(does not fit parameter|there is no tensor for).*");
  }

  /// The faults that a folder's tensors may have.
  enum Damage {
    MISSING("norm.weight"),
    RENAMED("norm.weight"),
    OTHER_SHAPE("norm.weight"),
    UNEXPECTED("surplus");

    final String named;

    Damage(String named) {
      this.named = named;
    }

    void of(SequencedMap<String, NDArray> tensors) {
      NDArray norm = tensors.get("model.norm.weight");
      switch (this) {
        case MISSING -> tensors.remove("model.norm.weight");
        case RENAMED -> tensors.put("model.norms.weight", tensors.remove("model.norm.weight"));
        case OTHER_SHAPE -> tensors.put("model.norm.weight", norm.get("1:"));
        case UNEXPECTED -> tensors.put("model.surplus", norm.duplicate());
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void aDamagedFolderIsRefusedAndTheModelIsAsItWas(Damage damage)
      throws IOException, TranslateException {
    HubModel hub = hub("llama");
    HubModel damaged = HubModel.of(changed("llama", damage::of));
    assertThatThrownBy(() -> damaged.load(Device.fromName(""), DEFAULTS))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(damage.named)
        .extracting(Throwable::getMessage)
        .asString()
        .doesNotContain("\n");
    try (Model model = hub.load(Device.fromName(""), DEFAULTS)) {
      assertThatThrownBy(() -> damaged.refresh(model, DEFAULTS))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(damage.named);
      reference("llama").requireAnsweredBy(hub, model);
    }
  }

  @Test
  void aPartOfAModelIsRefusedAndTensorsOverAreLeftWhereThatIsAskedFor()
      throws IOException, TranslateException {
    LoadOptions partial = LoadOptions.builder().optPartial(true).build();
    HubModel missing = HubModel.of(changed("llama", Damage.MISSING::of));
    assertThatThrownBy(() -> missing.load(Device.fromName(""), partial))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("there is no tensor for 'norm_gamma'")
        .hasMessageNotContaining("optPartial");
    try (Model model = hub("llama").load(Device.fromName(""), DEFAULTS)) {
      assertThatThrownBy(() -> missing.refresh(model, partial)).isInstanceOf(MisuseException.class);
      reference("llama").requireAnsweredBy(hub("llama"), model);
    }
    HubModel over =
        HubModel.of(
            changed(
                "gpt2",
                tensors -> tensors.put("surplus", tensors.firstEntry().getValue().duplicate())));
    assertThatThrownBy(() -> over.load(Device.fromName(""), DEFAULTS))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("no parameter takes tensor 'surplus'", "optPartial(true)");
    try (Model model = over.load(Device.fromName(""), partial)) {
      reference("gpt2").requireAnsweredBy(over, model);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"pickled/pytorch_model.bin", "hub/bert/model.safetensors"})
  void aFileOfWeightsAloneIsNoModel(String name) {
    Path file = HUB.resolveSibling(name);
    assertThatThrownBy(() -> HubModel.of(file))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(file.toString());
  }
}
