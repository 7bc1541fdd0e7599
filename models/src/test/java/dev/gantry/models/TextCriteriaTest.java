// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static dev.gantry.models.TextReference.TEXTS;
import static dev.gantry.models.TextReference.requireClose;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.offset;

import ai.djl.Model;
import ai.djl.huggingface.translator.TextClassificationTranslatorFactory;
import ai.djl.huggingface.translator.TextEmbeddingTranslatorFactory;
import ai.djl.inference.Predictor;
import ai.djl.modality.Classifications;
import ai.djl.modality.Input;
import ai.djl.modality.Output;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Blocks;
import ai.djl.repository.LocalRepository;
import ai.djl.repository.SimpleRepository;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ModelNotFoundException;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.TranslateException;
import ai.djl.util.StringPair;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.models.internal.HubRepositoryFactory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// DJL's `Criteria` on texts: the folder and the engine's name are all that they need.
class TextCriteriaTest {
  @AfterEach
  void nothingIsLeft() {
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private static <I, O> Criteria.Builder<I, O> criteria(
      String folder, Class<I> input, Class<O> output) {
    return Criteria.builder()
        .setTypes(input, output)
        .optModelPath(TEXTS.resolve(folder))
        .optEngine("Gantry");
  }

  @ParameterizedTest
  @ValueSource(strings = {"mean", "cls-dense", "prompts", "weighted"})
  void textsBecomeVectors(String folder) throws Exception {
    TextReference reference = TextReference.of(folder);
    float[][] expected = reference.vectors("");
    try (ZooModel<String, float[]> model =
            criteria(folder, String.class, float[].class).build().loadModel();
        Predictor<String, float[]> predictor = model.newPredictor()) {
      requireClose(predictor.predict(reference.texts().getFirst()), expected[0]);
      requireClose(predictor.batchPredict(reference.texts()).toArray(float[][]::new), expected);
    }
    try (ZooModel<String[], float[][]> model =
            criteria(folder, String[].class, float[][].class).build().loadModel();
        Predictor<String[], float[][]> predictor = model.newPredictor()) {
      String[] texts = reference.texts().toArray(String[]::new);
      requireClose(predictor.predict(texts), expected);
      assertThat(predictor.batchPredict(List.of(texts, new String[] {texts[1]})).get(1))
          .hasDimensions(1, expected[1].length);
    }
  }

  @Test
  void aCallWithoutTextsIsOneClearLine() throws Exception {
    try (ZooModel<String[], float[][]> model =
            criteria("mean", String[].class, float[][].class).build().loadModel();
        Predictor<String[], float[][]> predictor = model.newPredictor()) {
      assertThatExceptionOfType(TranslateException.class)
          .isThrownBy(() -> predictor.predict(new String[0]))
          .withMessageContaining("a call must have a text or more");
      assertThatExceptionOfType(TranslateException.class)
          .isThrownBy(() -> predictor.predict(new String[1]))
          .withMessageContaining("text must be given (was null)");
    }
    try (ZooModel<String, float[]> model =
            criteria("mean", String.class, float[].class).build().loadModel();
        Predictor<String, float[]> predictor = model.newPredictor()) {
      assertThatExceptionOfType(TranslateException.class)
          .isThrownBy(() -> predictor.predict(null))
          .withMessageContaining("text must be given (was null)");
    }
  }

  @Test
  void argumentsChooseThePrompt() throws Exception {
    TextReference reference = TextReference.of("prompts");
    try (ZooModel<String, float[]> model =
            criteria("prompts", String.class, float[].class)
                .optArgument("prompt", "passage")
                .build()
                .loadModel();
        Predictor<String, float[]> predictor = model.newPredictor()) {
      requireClose(predictor.predict(reference.texts().get(2)), reference.vectors("passage")[2]);
    }
  }

  @Test
  void argumentsChooseTheLength() throws Exception {
    String text = "the cat sat on the mat ".repeat(4);
    TextOptions options = TextOptions.builder().optMaxLength(8).build();
    try (ZooModel<String, float[]> model =
            criteria("mean", String.class, float[].class)
                .optArgument("maxLength", "8")
                .build()
                .loadModel();
        Predictor<String, float[]> predictor = model.newPredictor();
        TextEmbedder shorter = HubModel.of(TEXTS.resolve("mean")).embedder(options);
        TextEmbedder embedder = HubModel.of(TEXTS.resolve("mean")).embedder()) {
      float[] vector = predictor.predict(text);
      requireClose(vector, shorter.embed(text));
      assertThat(vector[0]).isNotCloseTo(embedder.embed(text)[0], offset(1e-3f));
    }
  }

  @Test
  void aModelThatTheEngineDidNotLoadIsRefusedAndClosed() {
    Model model = Model.newInstance("other", "PyTorch");
    model.setBlock(Blocks.identityBlock());
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() ->
            new TextTranslatorFactory().newInstance(String.class, float[].class, model, Map.of()))
        .withMessage("translators of texts need a folder of the hub that the engine Gantry loads");
    assertThat(model.getNDManager().isOpen()).isFalse();
  }

  @Test
  void pairsBecomeScores() throws Exception {
    TextReference reference = TextReference.of("cross");
    try (ZooModel<StringPair, float[]> model =
            criteria("cross", StringPair.class, float[].class).build().loadModel();
        Predictor<StringPair, float[]> predictor = model.newPredictor()) {
      List<float[]> scores = predictor.batchPredict(reference.pairs());
      for (int i = 0; i < scores.size(); i++) {
        requireClose(scores.get(i), new float[] {reference.row("scores")[i]});
      }
    }
  }

  @Test
  void textsGetLabels() throws Exception {
    TextReference reference = TextReference.of("classes");
    try (ZooModel<String, Classifications> model =
            criteria("classes", String.class, Classifications.class).build().loadModel();
        Predictor<String, Classifications> predictor = model.newPredictor()) {
      Classifications answer = predictor.predict(reference.texts().getFirst());
      assertThat(answer.best().getClassName()).isEqualTo("fine");
      assertThat((float) answer.best().getProbability())
          .isCloseTo(reference.rows("softmax")[0][1], offset(2e-5f));
    }
    try (ZooModel<StringPair, Classifications> model =
            criteria("classes", StringPair.class, Classifications.class).build().loadModel();
        Predictor<StringPair, Classifications> predictor = model.newPredictor()) {
      assertThat(predictor.predict(new StringPair("a", "b")).getClassNames()).hasSize(3);
    }
  }

  @Test
  void djlsOwnTranslatorsGiveTheSame() throws Exception {
    TextReference mean = TextReference.of("mean");
    try (ZooModel<String, float[]> model =
            criteria("mean", String.class, float[].class)
                .optTranslatorFactory(new TextEmbeddingTranslatorFactory())
                .optArgument("includeTokenTypes", "true")
                .optArgument("doLowerCase", "und")
                .optArgument("maxLength", "24")
                .build()
                .loadModel();
        Predictor<String, float[]> predictor = model.newPredictor()) {
      requireClose(predictor.predict(mean.texts().getFirst()), mean.vectors("")[0]);
      requireClose(predictor.predict(mean.texts().get(4)), mean.vectors("")[4]);
    }
    TextReference cross = TextReference.of("cross");
    try (ZooModel<StringPair, float[]> model =
            criteria("cross", StringPair.class, float[].class)
                .optTranslatorFactory(new TextClassificationTranslatorFactory())
                .optArgument("includeTokenTypes", "true")
                .optArgument("reranking", "true")
                .optArgument("maxLength", "38")
                .build()
                .loadModel();
        Predictor<StringPair, float[]> predictor = model.newPredictor()) {
      requireClose(
          predictor.predict(cross.pairs().getFirst()), new float[] {cross.row("scores")[0]});
    }
    TextReference classes = TextReference.of("classes");
    try (ZooModel<String, Classifications> model =
            criteria("classes", String.class, Classifications.class)
                .optTranslatorFactory(new TextClassificationTranslatorFactory())
                .optArgument("includeTokenTypes", "true")
                .build()
                .loadModel();
        Predictor<String, Classifications> predictor = model.newPredictor()) {
      assertThat((float) predictor.predict(classes.texts().getFirst()).best().getProbability())
          .isCloseTo(classes.rows("softmax")[0][1], offset(2e-5f));
    }
  }

  /// As a `serving.properties` of DJL Serving names it.
  @Test
  void djlServingGetsVectorsScoresAndLabels(@TempDir Path folder) throws Exception {
    for (String name : List.of("mean", "cross", "classes")) {
      Path copy = TextReference.copy(TEXTS.resolve(name), folder.resolve(name));
      Files.writeString(
          copy.resolve("serving.properties"),
          "engine=Gantry\ntranslatorFactory=dev.gantry.models.TextTranslatorFactory\n");
      Criteria<Input, Output> criteria =
          Criteria.builder().setTypes(Input.class, Output.class).optModelPath(copy).build();
      Input input = new Input();
      input.addProperty("Content-Type", "application/json");
      input.add(
          name.equals("cross")
              ? "{\"text\": \"what is a vector\", \"text_pair\": \"a\"}"
              : "{\"inputs\": \"The weather is lovely today.\"}");
      try (ZooModel<Input, Output> model = criteria.loadModel();
          Predictor<Input, Output> predictor = model.newPredictor()) {
        Output output = predictor.predict(input);
        assertThat(output.getCode()).as(name).isEqualTo(200);
        assertThat(output.getData().getAsString())
            .as(name)
            .contains(name.equals("classes") ? "fine" : name.equals("cross") ? "0.6" : "-0.");
      }
    }
  }

  @Test
  void inputsOfServingKeepDjlsRulesWhereNoTranslatorIsNamed() throws Exception {
    try (ZooModel<Input, Output> model =
            criteria("mean", Input.class, Output.class).build().loadModel();
        Predictor<Input, Output> predictor = model.newPredictor();
        NDManager manager = NDManager.newBaseManager()) {
      Input input = new Input();
      input.addProperty("Content-Type", "tensor/ndlist");
      input.add(new NDList(manager.create(new long[][] {{2, 5, 3}})).encode());
      NDList answer = predictor.predict(input).getDataAsNDList(manager);
      assertThat(answer.head().getShape()).isEqualTo(new Shape(1, 3, 32));
    }
  }

  @Test
  void foldersOfOthersAreDjls(@TempDir Path folder) {
    Criteria<String, float[]> criteria =
        Criteria.builder()
            .setTypes(String.class, float[].class)
            .optModelPath(folder)
            .optEngine("Gantry")
            .build();
    assertThatExceptionOfType(ModelNotFoundException.class).isThrownBy(criteria::loadModel);
  }

  @Test
  void aFolderOfFoldersWithMetadataIsDjlsRepositoryOfThem(@TempDir Path folder) throws IOException {
    HubRepositoryFactory factory = new HubRepositoryFactory();
    String metadata = "{\"metadataVersion\": \"0.2\", \"artifacts\": []}";
    Files.writeString(folder.resolve("metadata.json"), metadata);
    assertThat(factory.newInstance("one", folder.toUri())).isInstanceOf(SimpleRepository.class);
    Files.writeString(
        Files.createDirectory(folder.resolve("a")).resolve("metadata.json"), metadata);
    assertThat(factory.newInstance("all", folder.toUri())).isInstanceOf(LocalRepository.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"translator", "translatorFactory"})
  void aTranslatorThatAFolderNamesIsNotReplaced(String key, @TempDir Path folder)
      throws IOException {
    HubRepositoryFactory factory = new HubRepositoryFactory();
    Files.writeString(folder.resolve("config.json"), "{}");
    assertThat(arguments(factory, folder)).containsKey("translatorFactory");
    Files.writeString(folder.resolve("serving.properties"), key + "=com.example.Own\n");
    assertThat(arguments(factory, folder)).doesNotContainKey("translatorFactory");
  }

  private static Map<String, Object> arguments(HubRepositoryFactory factory, Path folder)
      throws IOException {
    return factory
        .newInstance("one", folder.toUri())
        .getResources()
        .getFirst()
        .getDefaultArtifact()
        .getArguments();
  }

  @Test
  void aModelThatGivesSomethingElseIsOneClearLine() {
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> criteria("cross", String.class, float[].class).build().loadModel())
        .withMessageContaining("vectors need a model whose first output is last_hidden_state");
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> criteria("mean", String.class, Classifications.class).build().loadModel())
        .withMessageContaining("classifies sequences");
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() ->
            criteria("mean", String.class, float[].class)
                .optArgument("maxLength", "long")
                .build()
                .loadModel())
        .withMessageContaining("maxLength");
  }
}
