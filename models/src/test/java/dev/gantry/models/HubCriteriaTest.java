// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import ai.djl.MalformedModelException;
import ai.djl.Model;
import ai.djl.ndarray.NDList;
import ai.djl.nn.Parameter;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.NoopTranslator;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// DJL's `Criteria` on a folder of the hub: the engine's name is all that they need.
class HubCriteriaTest {
  @AfterEach
  void nothingIsLeft() {
    // The session keeps pinned buffers from load to load on a GPU.
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  static List<String> folders() throws IOException {
    return HubModelTest.folders();
  }

  private static Criteria<NDList, NDList> criteria(Path folder) {
    return Criteria.builder()
        .setTypes(NDList.class, NDList.class)
        .optModelPath(folder)
        .optEngine("Gantry")
        .optTranslator(new NoopTranslator())
        .build();
  }

  @ParameterizedTest
  @MethodSource("folders")
  void aFolderAnswersAsTheReferenceDoes(String name) throws Exception {
    Path folder = HubModelTest.HUB.resolve(name);
    try (ZooModel<NDList, NDList> model = criteria(folder).loadModel()) {
      Reference.of(folder).requireAnsweredBy(HubModel.of(folder), model);
    }
  }

  @Test
  void noWeightOfALoadedModelHasAGradient() throws Exception {
    Path folder = HubModelTest.HUB.resolve("llama");
    try (Model byCriteria = criteria(folder).loadModel();
        Model byItself = HubModel.of(folder).load()) {
      for (Model model : List.of(byCriteria, byItself)) {
        assertThat(model.getBlock().getParameters().values())
            .noneMatch(Parameter::requiresGradient);
      }
    }
  }

  @Test
  void aConfigurationThatIsNotKnownIsOneClearLine(@TempDir Path folder) throws IOException {
    Files.writeString(folder.resolve("config.json"), "{\"model_type\": \"none\"}");
    assertThatExceptionOfType(MalformedModelException.class)
        .isThrownBy(() -> criteria(folder).loadModel())
        .satisfies(refused ->
            assertThat(refused.getMessage())
                .contains("config.json", "model_type", "none")
                .doesNotContain("\n"));
  }
}
