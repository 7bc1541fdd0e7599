// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import ai.djl.inference.Predictor;
import ai.djl.modality.Input;
import ai.djl.modality.Output;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.io.OutputStream;
import java.io.StringWriter;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// A model folder as DJL Serving loads it: `serving.properties`, weights, and a jar with a block
/// factory. Serving's artifacts are on no registry, so the test builds the same `Criteria` as
/// Serving's `ModelInfo`, and sends the bytes that Serving's HTTP front end passes on.
class ServingFolderTest {
  /// A factory of a block alone, as DJL's contract defines it, with the names of its tensors.
  private static final String BLOCK =
      """
      package demo;

      import ai.djl.Model;
      import ai.djl.nn.Activation;
      import ai.djl.nn.Block;
      import ai.djl.nn.BlockFactory;
      import ai.djl.nn.SequentialBlock;
      import ai.djl.nn.core.Linear;
      import dev.gantry.djl.ParameterNames;
      import java.nio.file.Path;
      import java.util.Map;
      import java.util.function.Supplier;

      public final class Digits implements BlockFactory, Supplier<ParameterNames> {
        @Override
        public Block newBlock(Model model, Path folder, Map<String, ?> arguments) {
          return new SequentialBlock()
              .add(Linear.builder().setUnits(2).build())
              .add(Activation.reluBlock());
        }

        @Override
        public ParameterNames get() {
          return ParameterNames.builder().rule("01Linear_{kind}", "fc.{kind}").build();
        }
      }
      """;

  /// A factory of a block with its parameters.
  private static final String LOADED =
      """
      package demo;

      import ai.djl.Model;
      import ai.djl.ndarray.types.Shape;
      import ai.djl.nn.Block;
      import ai.djl.nn.BlockFactory;
      import dev.gantry.djl.LoadOptions;
      import dev.gantry.djl.Weights;
      import java.io.IOException;
      import java.nio.file.Path;
      import java.util.Map;

      public final class LoadedDigits implements BlockFactory {
        @Override
        public Block newBlock(Model model, Path folder, Map<String, ?> arguments)
            throws IOException {
          Digits digits = new Digits();
          return Weights.blockFactory(
                  digits, digits.get(), LoadOptions.defaults(), new Shape(1, 2))
              .newBlock(model, folder, arguments);
        }
      }
      """;

  @TempDir private Path temporary;

  /// @param jarsInTheFolder whether Gantry's jars also lie in the model's folder, so that a class
  ///     loader below DJL's loads them
  @ParameterizedTest
  @CsvSource({
    "engine=Gantry blockFactory=demo.Digits parameterNames=demo.Digits inputShapes=(1;2), false",
    "engine=Gantry blockFactory=demo.LoadedDigits, false",
    "engine=PyTorch blockFactory=demo.LoadedDigits option.hasParameter=false, false",
    "engine=PyTorch blockFactory=demo.LoadedDigits option.hasParameter=false, true"
  })
  void aModelFolderAnswers(String properties, boolean jarsInTheFolder) throws Exception {
    Path folder = Files.createDirectory(temporary.resolve("digits"));
    new WeightsFile()
        .tensor("fc.weight", DType.F32, TensorShape.of(2, 2), 1, 2, -3, 4)
        .vector("fc.bias", DType.F32, 0.5, -100)
        .write(folder.resolve("model.safetensors"));
    Files.writeString(
        folder.resolve("serving.properties"),
        properties.replace(' ', '\n').replace(';', ',') + "\nbatchifier=none\n");
    jar(compiled(), folder.resolve("digits.jar"));
    URL[] ours =
        Stream.of(Weights.class, StoredTensor.class, GantrySession.class)
            .map(type -> type.getProtectionDomain().getCodeSource().getLocation())
            .toArray(URL[]::new);
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    if (jarsInTheFolder) {
      for (int i = 0; i < ours.length; i++) {
        jar(Path.of(ours[i].toURI()), folder.resolve("gantry-" + i + ".jar"));
      }
      thread.setContextClassLoader(new ChildLoaderTest.Without(ours));
    }
    try (ZooModel<Input, Output> model = criteria(folder).loadModel();
        Predictor<Input, Output> predictor = model.newPredictor()) {
      NDArray bias = model.getBlock().getParameters().get("01Linear_bias").getArray();
      assertThat(bias.getClass().equals(classHere())).isEqualTo(!jarsInTheFolder);
      assertThat(answer(predictor)).containsExactly(5.5f, 0);
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  /// Builds the criteria like Serving's `ModelInfo.load`.
  private static Criteria<Input, Output> criteria(Path folder) {
    return Criteria.builder()
        .setTypes(Input.class, Output.class)
        .optModelUrls(folder.toUri().toString())
        .optModelName("digits")
        .optFilters(Map.of())
        .optArguments(new ConcurrentHashMap<>())
        .optOptions(new ConcurrentHashMap<>())
        .optDevice(Device.cpu())
        .build();
  }

  /// Predicts; request and answer are the bytes of an NDList.
  private static float[] answer(Predictor<Input, Output> predictor) throws Exception {
    try (NDManager manager = NDManager.newBaseManager();
        NDArray question = manager.create(new float[][] {{1, 2}})) {
      Input input = new Input();
      input.addProperty("Content-Type", "tensor/ndlist");
      input.add(new NDList(question).encode());
      try (NDList answer =
          NDList.decode(manager, predictor.predict(input).getData().getAsBytes())) {
        return answer.singletonOrThrow().toFloatArray();
      }
    }
  }

  /// Returns the class of a loaded array in the test's class loader.
  private Class<?> classHere() {
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(temporary.resolve("digits"))) {
      return weights.load(manager).get(0).getClass();
    }
  }

  private Path compiled() throws IOException {
    Path sources = Files.createDirectories(temporary.resolve("src"));
    Path block = Files.writeString(sources.resolve("Digits.java"), BLOCK);
    Path loaded = Files.writeString(sources.resolve("LoadedDigits.java"), LOADED);
    Path classes = temporary.resolve("classes");
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StringWriter messages = new StringWriter();
    try (var files = compiler.getStandardFileManager(null, null, null)) {
      assertThat(
              compiler
                  .getTask(
                      messages,
                      files,
                      null,
                      List.of(
                          "-proc:none",
                          "-d",
                          classes.toString(),
                          "-cp",
                          System.getProperty("java.class.path")),
                      null,
                      files.getJavaFileObjects(block, loaded))
                  .call())
          .as(messages.toString())
          .isTrue();
    }
    return classes;
  }

  private static void jar(Path classes, Path jar) throws IOException {
    if (Files.isRegularFile(classes)) {
      Files.copy(classes, jar);
      return;
    }
    try (OutputStream out = Files.newOutputStream(jar);
        JarOutputStream entries = new JarOutputStream(out);
        Stream<Path> files = Files.walk(classes)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        entries.putNextEntry(new ZipEntry(classes.relativize(file).toString()));
        Files.copy(file, entries);
      }
    }
  }
}
