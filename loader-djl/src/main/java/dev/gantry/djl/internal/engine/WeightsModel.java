// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.engine;

import ai.djl.BaseModel;
import ai.djl.MalformedModelException;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.BlockFactory;
import ai.djl.nn.Parameter;
import ai.djl.training.Trainer;
import ai.djl.training.TrainingConfig;
import ai.djl.training.initializer.Initializer;
import ai.djl.util.ClassLoaderUtils;
import ai.djl.util.Pair;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A model whose parameters come from weights files: a folder of them, or one file.
///
/// DJL turns the arguments of a `Criteria` into properties, which are text. For that reason each
/// setting is read from the options of the load, and if it is not there, from the properties.
final class WeightsModel extends BaseModel {
  /// DJL's own option; `false` says that the parameters have their values already.
  private static final String HAS_PARAMETER = "hasParameter";

  private static final String NAMES = "parameterNames";
  private static final String SHAPES = "inputShapes";

  WeightsModel(String name, NDManager manager) {
    super(name);
    this.manager = manager;
    this.dataType = DataType.FLOAT32;
    manager.setName("gantryModel");
  }

  /// @throws MalformedModelException if the model has no block, the files are damaged or do not
  ///     fit the block, or a setting has an invalid value
  /// @throws IOException if a file is missing or cannot be read
  @Override
  public void load(Path modelPath, @Nullable String prefix, @Nullable Map<String, ?> options)
      throws IOException, MalformedModelException {
    if (!Files.exists(modelPath)) {
      throw new FileNotFoundException("there is no file or folder " + modelPath);
    }
    setModelDir(modelPath);
    Path place = modelDir;
    if (Files.isRegularFile(place) && place.getParent() != null) {
      modelDir = place.getParent();
    }
    try {
      load(place, options == null ? Map.of() : options);
      wasLoaded = true;
    } catch (MisuseException | MalformedFileException fault) {
      throw new MalformedModelException(place + ": " + fault.getMessage(), fault);
    } catch (TransferException fault) {
      throw new IOException(fault.getMessage(), fault);
    }
  }

  private void load(Path place, Map<String, ?> options) throws IOException {
    if (block == null) {
      block = registeredFactory().newBlock(this, modelDir, options);
    }
    if (setting(options, HAS_PARAMETER) instanceof String text && !Boolean.parseBoolean(text)) {
      return;
    }
    try (Weights weights = Weights.open(place)) {
      weights.load(manager, block, names(options), LoadOptions.defaults(), shapes(options));
    }
  }

  /// The block factory that the artifact `models` registers, for a folder of the hub.
  private BlockFactory registeredFactory() {
    if (Stream.of("config.json", "modules.json").noneMatch(this::isThere)) {
      throw new MisuseException(
          "the model has no block: give one by optBlock, setBlock or the argument blockFactory");
    }
    return ServiceLoader.load(BlockFactory.class, WeightsModel.class.getClassLoader())
        .findFirst()
        .orElseThrow(() ->
            new MisuseException(
                "the model has no block, and the artifact dev.gantry:models, which makes one from a"
                    + " config.json, is not on the class path"));
  }

  private boolean isThere(String file) {
    return Files.exists(modelDir.resolve(file));
  }

  private @Nullable Object setting(Map<String, ?> options, String key) {
    Object value = options.get(key);
    return value == null ? getProperty(key) : value;
  }

  private ParameterNames names(Map<String, ?> options) {
    Object given = setting(options, NAMES);
    if (given == null) {
      return ParameterNames.same();
    }
    if (given instanceof ParameterNames names) {
      return names;
    }
    // Searches the model's folder for the class, too, as DJL does for a BlockFactory.
    Supplier<?> supplier =
        ClassLoaderUtils.findImplementation(modelDir, Supplier.class, given.toString());
    if (supplier != null && supplier.get() instanceof ParameterNames names) {
      return names;
    }
    throw new MisuseException(
        "parameterNames must name a public class that is a Supplier<ParameterNames> and has a"
            + " public constructor without parameters (was '"
            + given
            + "'); DJL passes arguments on as text, so give an object by Weights.blockFactory");
  }

  private Shape[] shapes(Map<String, ?> options) {
    Object given = setting(options, SHAPES);
    if (given instanceof Shape[] shapes) {
      return shapes;
    }
    if (given instanceof Shape shape) {
      return new Shape[] {shape};
    }
    if (given == null) {
      return new Shape[0];
    }
    try {
      Shape[] shapes = Shape.parseShapes(given.toString()).values().toArray(Shape[]::new);
      if (shapes.length > 0) {
        return shapes;
      }
    } catch (IllegalArgumentException _) {
      // The error below says what is allowed.
    }
    throw new MisuseException(
        "inputShapes must be shapes such as (1,64),(1,8) (was '" + given + "')");
  }

  /// Makes a trainer in the same manner as DJL's own models.
  @Override
  public Trainer newTrainer(TrainingConfig config) {
    if (block == null) {
      throw new IllegalStateException("the model has no block: give one by setBlock");
    }
    for (Pair<Initializer, Predicate<Parameter>> each : config.getInitializers()) {
      if (each.getKey() != null && each.getValue() != null) {
        block.setInitializer(each.getKey(), each.getValue());
      }
    }
    return new Trainer(this, config);
  }

  @Override
  public String[] getArtifactNames() {
    try (Stream<Path> files = Files.walk(modelDir)) {
      return files
          .filter(Files::isRegularFile)
          .map(file -> modelDir.relativize(file).toString())
          .toArray(String[]::new);
    } catch (IOException fault) {
      throw new UncheckedIOException(fault);
    }
  }
}
