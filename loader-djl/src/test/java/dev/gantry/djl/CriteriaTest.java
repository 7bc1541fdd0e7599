// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import ai.djl.Device;
import ai.djl.MalformedModelException;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.inference.Predictor;
import ai.djl.modality.Input;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.BlockFactory;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ModelNotFoundException;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import ai.djl.translate.Batchifier;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CriteriaTest {
  private static final ParameterNames NAMES =
      ParameterNames.builder().rule("01Linear_{kind}", "fc.{kind}").build();

  @TempDir private Path folder;

  @BeforeEach
  void writeWeights() throws IOException {
    file().write(folder.resolve("model.safetensors"));
  }

  private static WeightsFile file() {
    return new WeightsFile()
        .tensor("fc.weight", DType.F32, TensorShape.of(2, 2), 1, 2, -3, 4)
        .vector("fc.bias", DType.F32, 0.5, -100);
  }

  @AfterEach
  void nothingIsHeld() {
    NoLeaks.assertNothingIsHeld();
  }

  private static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(2).build())
        .add(Activation.reluBlock());
  }

  private static BlockFactory factory() {
    return Weights.blockFactory(
        (_, _, _) -> block(), NAMES, LoadOptions.defaults(), new Shape(1, 2));
  }

  private Criteria.Builder<NDList, NDList> criteria() {
    return Criteria.builder()
        .setTypes(NDList.class, NDList.class)
        .optModelPath(folder)
        .optTranslator(new NoopTranslator());
  }

  private Criteria.Builder<NDList, NDList> withBlock() {
    return criteria()
        .optEngine("Gantry")
        .optBlock(block())
        .optArgument("parameterNames", Names.class.getName())
        .optOption("inputShapes", "(1,2)");
  }

  /// The class that the argument or option `parameterNames` names.
  public static final class Names implements Supplier<ParameterNames> {
    @Override
    public ParameterNames get() {
      return NAMES;
    }
  }

  private static void assertAnswers(Criteria<NDList, NDList> criteria) throws Exception {
    try (ZooModel<NDList, NDList> model = criteria.loadModel();
        Predictor<NDList, NDList> predictor = model.newPredictor()) {
      assertAnswers(predictor, model.getNDManager());
    }
  }

  private static void assertAnswers(Predictor<NDList, NDList> predictor, NDManager manager)
      throws Exception {
    try (NDArray question = manager.create(new float[][] {{1, 2}});
        NDList answer = predictor.predict(new NDList(question))) {
      assertThat(answer.singletonOrThrow().toFloatArray()).containsExactly(5.5f, 0);
    }
  }

  @Test
  void aBlockFactoryMakesTheModel() throws Exception {
    assertAnswers(criteria().optEngine("Gantry").optArgument("blockFactory", factory()).build());
  }

  @Test
  void djlsOwnEngineTakesTheBlockFactoryToo() throws Exception {
    assertAnswers(
        criteria()
            .optEngine("PyTorch")
            .optArgument("blockFactory", factory())
            .optOption("hasParameter", "false")
            .build());
  }

  @Test
  void aBlockTakesNamesOfAClassAndShapesAsText() throws Exception {
    assertAnswers(withBlock().build());
  }

  @Test
  void parametersOfTheSameNamesNeedNoNames() throws Exception {
    new WeightsFile()
        .tensor("01Linear_weight", DType.BF16, TensorShape.of(2, 2), 1, 2, -3, 4)
        .vector("01Linear_bias", DType.BF16, 0.5, -100)
        .write(folder.resolve("model.safetensors"));
    assertAnswers(
        criteria().optEngine("Gantry").optBlock(block()).optOption("inputShapes", "(1,2)").build());
  }

  @Test
  void theFolderMayNameTheEngineAndTheRest() throws Exception {
    Files.writeString(
        folder.resolve("serving.properties"),
        "engine=Gantry\noption.parameterNames=" + Names.class.getName() + "\ninputShapes=(1,2)\n");
    assertAnswers(criteria().optBlock(block()).build());
  }

  @Test
  void thePathMayBeOneFile() throws Exception {
    file().write(folder.resolve("other.safetensors"));
    assertAnswers(withBlock().optModelPath(folder.resolve("model.safetensors")).build());
  }

  @Test
  void modelLoadTakesOptions() throws Exception {
    try (Model model = Model.newInstance("some", Device.cpu(), "Gantry")) {
      model.setBlock(block());
      model.load(folder, null, Map.of("parameterNames", NAMES, "inputShapes", new Shape(1, 2)));
      try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
        assertAnswers(predictor, model.getNDManager());
      }
      assertThat(model.getModelPath()).isEqualTo(folder);
      assertThat(model.getArtifactNames()).containsExactly("model.safetensors");
      assertThat(model.getNDManager().getDevice()).isEqualTo(Device.cpu());
    }
  }

  @Test
  void predictorsTranslateAndBatch() throws Exception {
    Translator<float[], Float> translator =
        new Translator<>() {
          @Override
          public NDList processInput(TranslatorContext context, float[] input) {
            return new NDList(context.getNDManager().create(input));
          }

          @Override
          public Float processOutput(TranslatorContext context, NDList list) {
            return list.singletonOrThrow().sum().getFloat();
          }

          @Override
          public Batchifier getBatchifier() {
            return Batchifier.STACK;
          }
        };
    try (ZooModel<float[], Float> model =
            Criteria.builder()
                .setTypes(float[].class, Float.class)
                .optModelPath(folder)
                .optEngine("Gantry")
                .optDevice(Device.cpu())
                .optArgument("blockFactory", factory())
                .optTranslator(translator)
                .build()
                .loadModel();
        Predictor<float[], Float> predictor = model.newPredictor()) {
      assertThat(predictor.batchPredict(List.of(new float[] {1, 2}, new float[] {0, 30})))
          .containsExactly(5.5f, 80.5f);
    }
  }

  @Test
  void aLoadedModelCanBeTrained() throws Exception {
    try (ZooModel<NDList, NDList> model = withBlock().build().loadModel();
        Trainer trainer = model.newTrainer(new DefaultTrainingConfig(Loss.l2Loss()))) {
      trainer.initialize(new Shape(1, 2));
      assertThat(model.getBlock().getParameters().get("01Linear_bias").getArray().toFloatArray())
          .containsExactly(0.5f, -100);
    }
  }

  @Test
  void itNeverBecomesTheDefaultEngine() {
    assertThat(Engine.getDefaultEngineName()).isEqualTo("PyTorch");
    assertThat(Engine.getEngine("Gantry").getAlternativeEngine())
        .isSameAs(Engine.getEngine("PyTorch"));
  }

  @Test
  void aFolderThatIsNotThereIsNotFound() {
    assertThatExceptionOfType(ModelNotFoundException.class)
        .isThrownBy(() -> withBlock().optModelPath(folder.resolve("none")).build().loadModel());
    try (Model model = Model.newInstance("some", "Gantry")) {
      assertThatExceptionOfType(FileNotFoundException.class)
          .isThrownBy(() -> model.load(folder.resolve("none")))
          .withMessage("there is no file or folder " + folder.resolve("none"));
    }
  }

  private static void assertMalformed(Criteria.Builder<NDList, NDList> criteria, String... parts) {
    assertThatExceptionOfType(MalformedModelException.class)
        .isThrownBy(() -> criteria.build().loadModel())
        .satisfies(
            refused -> assertThat(refused.getMessage()).contains(parts).doesNotContain("\n"));
  }

  @Test
  void mistakesAreMalformedModels() throws IOException {
    assertMalformed(criteria().optEngine("Gantry"), "no block", "optBlock", "blockFactory");
    assertMalformed(withBlock().optOption("inputShapes", "wide"), "inputShapes", "(was 'wide')");
    assertMalformed(
        criteria().optEngine("Gantry").optBlock(block()).optArgument("inputShapes", "(1,2)"),
        folder.toString(),
        "no tensor for '01Linear_weight', '01Linear_bias'");
    assertMalformed(
        withBlock().optArgument("parameterNames", NAMES),
        "Supplier<ParameterNames>",
        "Weights.blockFactory");
    assertMalformed(
        withBlock().optArgument("parameterNames", Input.class.getName()), Input.class.getName());
    assertMalformed(withBlock().optOption("inputShapes", "(1,3)"), "fc.weight");
    Files.writeString(folder.resolve("model.safetensors"), "none");
    assertMalformed(withBlock(), "model.safetensors");
  }

  @Test
  void aBlockFactorysMistakesAreOurs() throws IOException {
    Criteria<NDList, NDList> criteria =
        criteria()
            .optEngine("PyTorch")
            .optOption("hasParameter", "false")
            .optArgument(
                "blockFactory",
                Weights.blockFactory(
                    (_, _, _) -> block(), ParameterNames.same(), LoadOptions.defaults()))
            .build();
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(criteria::loadModel)
        .withMessageContaining("shapes of its inputs");
    Files.writeString(folder.resolve("model.safetensors"), "none");
    assertThatExceptionOfType(MalformedFileException.class).isThrownBy(criteria::loadModel);
  }
}
