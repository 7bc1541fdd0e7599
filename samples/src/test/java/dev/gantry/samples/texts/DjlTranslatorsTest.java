// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.djl.huggingface.translator.TextClassificationTranslatorFactory;
import ai.djl.huggingface.translator.TextEmbeddingTranslatorFactory;
import ai.djl.inference.Predictor;
import ai.djl.modality.Classifications;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.training.ParameterStore;
import ai.djl.translate.TranslatorFactory;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.models.HubModel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// DJL's translators of texts pass on what its tokenizers make: ids, a mask and perhaps types, without names.
/// The texts have other lengths, so that one is padded in a batch.
class DjlTranslatorsTest {
  private static final List<String> TEXTS = List.of("the cat", "a dog saw the cat");

  /// The tokens of the words above, with `[CLS]` and `[SEP]` around them.
  private static final long[][] IDS = {{2, 4, 6, 3, 0, 0, 0}, {2, 5, 7, 8, 4, 6, 3}};

  private static final Path HUB = Path.of("..", "models", "src", "test", "resources", "hub");

  @AfterEach
  void nothingIsLeft() {
    // The session keeps pinned buffers from load to load on a GPU.
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private <O> ZooModel<String, O> model(
      String name, Class<O> output, TranslatorFactory factory, Map<String, String> arguments)
      throws Exception {
    Criteria.Builder<String, O> criteria =
        Criteria.builder()
            .setTypes(String.class, output)
            .optModelPath(HUB.resolve(name))
            .optEngine("Gantry")
            .optTranslatorFactory(factory);
    arguments.forEach(criteria::optArgument);
    return criteria.build().loadModel();
  }

  /// The block's answer to inputs by their names, of which the references are compared elsewhere.
  private static NDArray answer(ZooModel<?, ?> model, NDManager manager) {
    NDArray ids =
        manager.create(Stream.of(IDS).flatMapToLong(Arrays::stream).toArray(), new Shape(2, 7));
    NDList inputs =
        HubModel.of(model.getModelPath())
            .arranged(
                Map.of(
                    "input_ids", ids, "attention_mask", ids.neq(0).toType(DataType.INT64, false)));
    return model.getBlock().forward(new ParameterStore(manager, false), inputs, false).get(0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"false", "true"})
  void embeddingsAreTheMeansOfTheStates(String types) throws Exception {
    try (ZooModel<String, float[]> model =
            model(
                "bert",
                float[].class,
                new TextEmbeddingTranslatorFactory(),
                Map.of("normalize", "false", "includeTokenTypes", types));
        Predictor<String, float[]> predictor = model.newPredictor();
        NDManager manager = model.getNDManager().newSubManager()) {
      NDArray states = answer(model, manager);
      List<float[]> batch = predictor.batchPredict(TEXTS);
      for (int i = 0; i < TEXTS.size(); i++) {
        long length = Arrays.stream(IDS[i]).filter(id -> id != 0).count();
        float[] mean = states.get(i).get("0:" + length).mean(new int[] {0}).toFloatArray();
        assertThat(batch.get(i)).containsExactly(mean, within(1e-5f));
        assertThat(predictor.predict(TEXTS.get(i))).containsExactly(mean, within(1e-5f));
      }
    }
  }

  @Test
  void classesComeByTheirScores() throws Exception {
    try (ZooModel<String, Classifications> model =
            model(
                "bert-labels",
                Classifications.class,
                new TextClassificationTranslatorFactory(),
                Map.of());
        Predictor<String, Classifications> predictor = model.newPredictor();
        NDManager manager = model.getNDManager().newSubManager()) {
      NDArray shares = answer(model, manager).softmax(1);
      List<Classifications> batch = predictor.batchPredict(TEXTS);
      for (int i = 0; i < TEXTS.size(); i++) {
        for (int label = 0; label < 3; label++) {
          double share = shares.getFloat(i, label);
          assertThat(batch.get(i).get(String.valueOf(label)).getProbability())
              .isCloseTo(share, within(1e-5));
          assertThat(predictor.predict(TEXTS.get(i)).get(String.valueOf(label)).getProbability())
              .isCloseTo(share, within(1e-5));
        }
      }
    }
  }
}
