// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.models.HubModel.Tower;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HubTowersTest {
  private static final Path TOWERS = Path.of("src/test/resources/towers");

  @TempDir Path folder;

  /// The reference divides the vectors by their lengths.
  @ParameterizedTest
  @CsvSource({
    "clip,TEXT,text_embeds,text_embeds",
    "clip,IMAGE,image_embeds,image_embeds",
    "siglip,TEXT,text_embeds,pooler_output",
    "siglip,IMAGE,image_embeds,pooler_output"
  })
  void eachTowerGivesTheVectorsOfBoth(String name, Tower tower, String expected, String output)
      throws IOException, TranslateException {
    HubModel hub = HubModel.of(TOWERS.resolve(name), tower);
    Reference both = Reference.of(TOWERS.resolve(name));
    SequencedMap<String, Reference.Values> own = new LinkedHashMap<>(both.inputs());
    own.keySet().removeIf(input -> input.equals("pixel_values") == (tower == Tower.TEXT));
    Reference asked = new Reference(both.folder(), own, both.outputs(), 0, List.of());
    try (Model model = hub.load(Device.fromName(""), LoadOptions.defaults())) {
      float[] vectors = Reference.answers(hub, model, asked).get(output);
      List<Double> wanted = both.outputs().get(expected).values();
      assertThat(vectors).hasSameSizeAs(wanted.toArray());
      int width = vectors.length / 2;
      for (int i = 0; i < vectors.length; i++) {
        double length = 0;
        for (int j = 0; j < width; j++) {
          length += Math.pow(vectors[i / width * width + j], 2);
        }
        assertThat(vectors[i] / Math.sqrt(length)).isCloseTo(wanted.get(i), Offset.offset(2e-4));
      }
      hub.refresh(model, LoadOptions.defaults());
    }
  }

  @Test
  void aTowerIsNoEmbedder() {
    HubModel tower = HubModel.of(TOWERS.resolve("siglip"), Tower.TEXT);
    assertThatThrownBy(tower::embedder)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(
            "of the tower TEXT, whose load() gives last_hidden_state and pooler_output");
    assertThatThrownBy(() -> HubModel.of(HubModelTest.HUB.resolve("clip-text")).embedder())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("(CLIPTextModelWithProjection gives text_embeds, last_hidden_state)");
  }

  @Test
  void aFolderOfTwoModelsAsksWhich() {
    assertThatThrownBy(() -> HubModel.of(TOWERS.resolve("clip")))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("it is two models: HubModel.of(folder, Tower.TEXT), or Tower.IMAGE");
  }

  @Test
  void aFolderOfOneModelHasNoTowers() {
    assertThatThrownBy(() -> HubModel.of(Path.of("src/test/resources/hub/bert"), Tower.TEXT))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("'model_type' is \"bert\"; clip and siglip have towers");
  }

  @Test
  void anOldFilesSecondConfigurationCounts() throws IOException {
    String config = Files.readString(TOWERS.resolve("clip").resolve("config.json"));
    Files.writeString(
        folder.resolve("config.json"),
        config.replace(
            "\"text_config\": {",
            "\"text_config_dict\": {\"hidden_act\": \"nothing\"}, \"text_config\": {"));
    assertThatThrownBy(() -> HubModel.of(folder, Tower.TEXT))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("'hidden_act' is \"nothing\"");
    assertThat(HubModel.of(folder, Tower.IMAGE).outputs()).contains("image_embeds");
  }

  @Test
  void aKeyThatIsNotKnownIsRefused() throws IOException {
    String config = Files.readString(TOWERS.resolve("siglip").resolve("config.json"));
    Files.writeString(
        folder.resolve("config.json"),
        config.replace("\"text_config\": {", "\"third_config\": {\"a\": 1}, \"text_config\": {"));
    assertThatThrownBy(() -> HubModel.of(folder, Tower.TEXT))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("third_config");
  }
}
