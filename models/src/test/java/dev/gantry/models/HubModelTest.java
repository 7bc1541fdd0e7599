// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

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
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LiveWeights;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Folders that the reference library wrote answer as it does.
class HubModelTest {
  static final Path HUB = Path.of(System.getProperty("gantry.hub", "src/test/resources/hub"));

  private static final LoadOptions DEFAULTS = LoadOptions.defaults();

  /// The answers to texts with padding before them.
  private static final String PADDED_LEFT = "expected-left.json";

  @TempDir private Path temporary;

  static List<String> folders() throws IOException {
    try (Stream<Path> folders = Files.list(HUB)) {
      return folders
          .filter(Files::isDirectory)
          .map(folder -> folder.getFileName().toString())
          .sorted()
          .toList();
    }
  }

  @AfterEach
  void nothingIsLeft() {
    // The session keeps pinned buffers from load to load on a GPU.
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private static HubModel hub(String name) {
    return HubModel.of(HUB.resolve(name));
  }

  private static Reference reference(String name) throws IOException {
    return Reference.of(HUB.resolve(name));
  }

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

  /// A copy of a folder with other tensors.
  private Path changed(String name, Consumer<SequencedMap<String, NDArray>> change)
      throws IOException {
    Path folder = Files.createDirectories(temporary.resolve(name));
    Files.copy(HUB.resolve(name).resolve("config.json"), folder.resolve("config.json"));
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(HUB.resolve(name))) {
      SequencedMap<String, NDArray> tensors = new LinkedHashMap<>();
      weights.load(manager).forEach(array -> tensors.put(array.getName(), array));
      change.accept(tensors);
      WeightsWriter.builder().setFile(folder.resolve("model.safetensors")).build().write(tensors);
    }
    return folder;
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

  private static float[] predicted(Model model, HubModel hub, Map<String, NDArray> inputs)
      throws TranslateException {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      return predictor.predict(hub.arranged(inputs)).singletonOrThrow().toFloatArray();
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
              "the input 'atention_mask' is none of input_ids, attention_mask, token_type_ids, by"
                  + " whose names others are given");
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
