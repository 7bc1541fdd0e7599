// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The inputs that a model takes, by their order or by their names, and those that it refuses.
class HubInputsTest extends HubModelFixture {
  @Test
  void paddingBehindATextChangesNothing() throws IOException, TranslateException {
    HubModel hub = hub("llama");
    try (Model model = hub.load(Device.fromName(""), DEFAULTS)) {
      try (NDManager manager = model.getNDManager().newSubManager()) {
        NDArray ids = manager.create(new long[] {5, 6, 7, 0}, new Shape(1, 4));
        NDArray mask = manager.create(new long[] {1, 1, 1, 0}, new Shape(1, 4));
        Map<String, NDArray> padded = Map.of("input_ids", ids, "attention_mask", mask);
        float[] without = predicted(model, hub, Map.of("input_ids", ids.get(":, :3")));
        float[] with = predicted(model, hub, padded);
        for (int i = 0; i < without.length; i++) {
          assertThat(with[i]).isCloseTo(without[i], within(1e-5f));
        }
      }
    }
  }

  /// A tokenizer may pad with another token than the one that config.json names, and a decoder's
  /// config.json often names none.
  @ParameterizedTest
  @CsvSource({
    "llama-labels, LlamaForSequenceClassification, null",
    "llama-labels, LlamaForSequenceClassification, 0",
    "llama-labels, LlamaForSequenceClassification, 9",
    // Its tokens also see those behind them.
    "gemma3-states, Gemma3TextForSequenceClassification, 0",
    "gemma3-states, Gemma3TextForSequenceClassification, null"
  })
  void aDecodersLabelsAreThoseOfTheLastTokenThatTheMaskShows(
      String name, String kind, String padding) throws IOException, TranslateException {
    Path folder =
        changed(
            name,
            tensors ->
                tensors.putIfAbsent(
                    "score.weight",
                    tensors.firstEntry().getValue().getManager().arange(64f).reshape(2, 32)));
    Path config = folder.resolve("config.json");
    Files.writeString(
        config,
        Files.readString(config)
            .replace("Gemma3TextModel", kind)
            .replace("\"pad_token_id\": 0", "\"pad_token_id\": " + padding));
    HubModel hub = HubModel.of(folder);
    try (Model model = hub.load(Device.fromName(""), DEFAULTS);
        NDManager manager = model.getNDManager().newSubManager()) {
      NDArray text = manager.create(new long[] {5, 6, 7}, new Shape(1, 3));
      float[] alone = predicted(model, hub, Map.of("input_ids", text));
      long[][] batch = {{5, 6, 7, 3, 3}, {3, 3, 5, 6, 7}, {5, 6, 7, 0, 0}, {8, 7, 6, 5, 4}};
      long[][] shown = {{1, 1, 1, 0, 0}, {0, 0, 1, 1, 1}, {1, 1, 1, 0, 0}, {1, 1, 1, 1, 1}};
      float[] together =
          predicted(
              model,
              hub,
              Map.of("input_ids", manager.create(batch), "attention_mask", manager.create(shown)));
      for (int i = 0; i < 3 * alone.length; i++) {
        assertThat(together[i]).isCloseTo(alone[i % alone.length], withinPercentage(0.01));
      }
    }
  }

  private static float[] predicted(Model model, HubModel hub, Map<String, NDArray> inputs)
      throws TranslateException {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      return predictor.predict(hub.arranged(inputs)).singletonOrThrow().toFloatArray();
    }
  }

  /// DJL's tokenizers give them so, without names.
  @Test
  void textsGoInTheOrderOfDjlsTokenizersOrByTheirNames() throws TranslateException {
    HubModel hub = hub("bert");
    try (Model model = hub.load(Device.fromName(""), DEFAULTS);
        NDManager manager = model.getNDManager().newSubManager();
        Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      Shape shape = new Shape(1, 4);
      NDArray ids = manager.create(new long[] {5, 6, 7, 0}, shape);
      NDArray mask = manager.create(new long[] {1, 1, 1, 0}, shape);
      NDArray types = manager.create(new long[] {0, 1, 1, 0}, shape);
      float[] right = predictor.predict(new NDList(ids, mask, types)).get(0).toFloatArray();
      assertThat(
              predictor
                  .predict(
                      hub.arranged(
                          Map.of(
                              "token_type_ids", types, "attention_mask", mask, "input_ids", ids)))
                  .get(0)
                  .toFloatArray())
          .isEqualTo(right);
      assertThat(predictor.predict(new NDList(ids, mask)).get(0).toFloatArray())
          .isEqualTo(
              predictor.predict(new NDList(ids, mask, ids.zerosLike())).get(0).toFloatArray())
          .isNotEqualTo(right);
      assertThat(
              predictor
                  .predict(hub.arranged(Map.of("token_type_ids", types, "input_ids", ids)))
                  .get(0)
                  .toFloatArray())
          .isEqualTo(
              predictor.predict(new NDList(ids, ids.onesLike(), types)).get(0).toFloatArray());

      ids.setName("input_ids");
      mask.setName("attention_mask");
      types.setName("token_type_ids");
      assertThat(predictor.predict(new NDList(types, ids, mask)).get(0).toFloatArray())
          .isEqualTo(right);
      mask.setName("atention_mask");
      assertThatThrownBy(() -> predictor.predict(new NDList(ids, mask)))
          .rootCause()
          .hasMessage(
              "the input 'atention_mask' must have one of the names input_ids, attention_mask,"
                  + " token_type_ids, as the other inputs do");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"bert", "gpt2", "llama"})
  void textsOfAnotherShapeAreOneClearLine(String name) {
    try (Model model = hub(name).load(Device.fromName(""), DEFAULTS);
        NDManager manager = model.getNDManager().newSubManager();
        Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      NDArray ids = manager.ones(new Shape(2, 3), DataType.INT64);
      Map<NDList, String> wrong =
          Map.of(
              new NDList(ids.get(0)),
                  "input_ids must be of shape (batch, length), with a token or more (was (3))",
              new NDList(manager.ones(new Shape(2, 0), DataType.INT64)), "(was (2, 0))",
              new NDList(manager.ones(new Shape(2, 3))),
                  "input_ids must be INT64 or INT32 (was float32)",
              new NDList(ids, ids.get(0)),
                  "attention_mask must be of the shape of input_ids, (2, 3) (was (3))",
              new NDList(ids, ids, ids, ids), "the inputs must be input_ids, attention_mask");
      wrong.forEach((inputs, message) ->
          assertThatThrownBy(() -> predictor.predict(inputs))
              .as(message)
              .rootCause()
              .isInstanceOf(MisuseException.class)
              .hasMessageContaining(message));
    }
  }

  @ParameterizedTest
  @CsvSource({"bert, 205", "gpt2, 216", "llama, 261"})
  void idsThatTheModelDoesNotKnowAreNamed(String name, long tokens) {
    try (Model model = hub(name).load(Device.fromName(""), DEFAULTS);
        NDManager manager = model.getNDManager().newSubManager();
        Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      for (long wrong : new long[] {tokens, -1}) {
        NDArray ids = manager.create(new long[] {1, 2, 3, 4, 5, wrong}, new Shape(2, 3));
        assertThatThrownBy(() -> predictor.predict(new NDList(ids)))
            .rootCause()
            .isInstanceOf(MisuseException.class)
            .hasMessage(
                "input_ids must be 0 to %d (was %d at [1, 2]): the model knows %d tokens",
                tokens - 1, wrong, tokens);
      }
    }
  }

  @Test
  void tokenTypesThatTheModelDoesNotKnowAreNamed() {
    try (Model model = hub("bert").load(Device.fromName(""), DEFAULTS);
        NDManager manager = model.getNDManager().newSubManager();
        Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      NDArray ids = manager.ones(new Shape(1, 3), DataType.INT64);
      NDArray types = manager.create(new long[] {0, 1, 2}, new Shape(1, 3));
      assertThatThrownBy(() -> predictor.predict(new NDList(ids, ids, types)))
          .rootCause()
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "token_type_ids must be 0 to 1 (was 2 at [0, 2]): the model knows 2 token types");
    }
  }
}
