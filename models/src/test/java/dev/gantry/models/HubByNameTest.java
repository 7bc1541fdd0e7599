// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.testing.HubServer;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Models of a hub on the loopback, by their names.
@ExtendWith(NoLeaks.class)
class HubByNameTest {
  private static final HubServer SERVER = HubServer.ofProcess();
  private static final Path TEXTS = HubModelTest.HUB.resolveSibling("texts");

  @ParameterizedTest
  @ValueSource(strings = {"llama", "bert", "resnet"})
  void aModelAnswersByItsName(String name) throws IOException, TranslateException {
    Path folder = HubModelTest.HUB.resolve(name);
    SERVER.put("owner/" + name, folder);
    HubModel hub = HubModel.of("hf://owner/" + name);
    assertThat(hub.folder().resolve("config.json"))
        .hasSameTextualContentAs(folder.resolve("config.json"));
    try (Model model = hub.load(Device.fromName(""), LoadOptions.defaults())) {
      Reference.of(folder).requireAnsweredBy(hub, model);
      var _ = hub.refresh(model, LoadOptions.defaults());
      Reference.of(folder).requireAnsweredBy(hub, model);
    }
    assertThat(hub.folder()).hasFileName(SERVER.commit("owner/" + name));
  }

  /// The model is in the repository itself, or in a folder of it.
  @ParameterizedTest
  @ValueSource(strings = {"mean", "cls-dense"})
  void anEmbedderComesWithItsModules(String name) {
    SERVER.put("owner/" + name, TEXTS.resolve(name));
    try (TextEmbedder here = HubModel.of(TEXTS.resolve(name)).embedder();
        TextEmbedder there = HubModel.of("hf://owner/" + name).embedder()) {
      assertThat(there.embed("a cat and a dog")).isEqualTo(here.embed("a cat and a dog"));
    }
  }

  @Test
  void weightsAreOfTheRevisionWhoseConfigurationWasRead() throws IOException, TranslateException {
    Path folder = HubModelTest.HUB.resolve("bert");
    SERVER.put("owner/moving", folder);
    HubModel hub = HubModel.of("hf://owner/moving");
    SERVER.put("owner/moving", "model.safetensors", new byte[9]);
    try (Model model = hub.load()) {
      Reference.of(folder).requireAnsweredBy(hub, model);
    }
  }

  @Test
  void aNameOfTheHubWithoutItsSchemeIsMissedInOneLine() {
    assertThatThrownBy(() -> HubModel.of("org/model"))
        .isInstanceOf(MisuseException.class)
        .hasMessage("there is no folder org/model; that model of the hub is hf://org/model");
    Path file = TEXTS.resolve("mean/config.json");
    assertThatThrownBy(() -> HubModel.of(file))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "a model is a folder with config.json, or a GGUF file (was the file " + file + ")");
    assertThatThrownBy(() -> HubModel.of(Path.of("no/where/at-all")))
        .isInstanceOf(TransferException.class);
  }

  @Test
  void aGgufFileIsNamed() throws IOException, TranslateException {
    Path files = HubModelTest.HUB.resolveSibling("gguf");
    SERVER.put("owner/gguf", files);
    HubModel hub = HubModel.of("hf://owner/gguf/rope3.gguf");
    try (Model model = hub.load(Device.fromName(""), LoadOptions.defaults())) {
      Reference.of(HubModelTest.HUB.resolve("llama-rope3")).requireAnsweredBy(hub, model);
    }
    assertThatThrownBy(() -> HubModel.of("hf://owner/gguf"))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("several GGUF files: name one, such as");
  }

  @Test
  void aPathStaysAPath() {
    Path folder = HubModelTest.HUB.resolve("llama");
    assertThat(HubModel.of(folder.toString()).folder()).isEqualTo(folder);
    // It looks like a name of the hub, and there is such a folder.
    Path twoNames = Path.of("src/test");
    assertThat(FetchedModel.local(twoNames).path()).isEqualTo(twoNames);
  }

  @Test
  void aModelOfAnotherStoreIsRefusedInOneLine() {
    assertThatThrownBy(() -> HubModel.of("https://host/model/"))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "a model must be a local folder or one of the hub, such as hf://OWNER/NAME (was"
                + " https://host/model/)");
  }

  @Test
  void aRepositoryWithoutAModelIsRefusedInOneLine() {
    SERVER.put("datasets/owner/rows", "rows.csv", new byte[3]);
    assertThatThrownBy(() -> HubModel.of("hf://datasets/owner/rows"))
        .isInstanceOf(MisuseException.class)
        .hasMessage("hf://datasets/owner/rows has no config.json, so it is not a model");
  }
}
