// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.resident;

import ai.djl.ModelException;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.BlockFactory;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.TranslateException;
import com.sun.net.httpserver.HttpServer;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.samples.NumberServer;
import dev.gantry.samples.ServeByCriteria;
import dev.gantry.samples.ServeModel;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;

/// A server that starts on resident weights, or on the files if no server of resident weights listens.
///
/// `FOLDER` holds the weights of a classifier of 8 × 8 digits, such as
/// `samples/src/main/resources/model`, and `LOCATION` is the location that `gantry serve-weights
/// FOLDER` prints. `PORT` 0 stands for any free port. The server ends after `SECONDS`.
/// [NumberServer] describes the requests.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ServeResident.java LOCATION FOLDER PORT SECONDS
/// ```
public final class ServeResident {
  private static final int PIXELS = 64;

  private ServeResident() {}

  public static void main(String[] arguments)
      throws IOException, ModelException, TranslateException, InterruptedException {
    Usage.check("ServeResident.java LOCATION FOLDER PORT SECONDS", arguments);
    Path folder = Path.of(arguments[1]);
    // They open, and a GPU with them, while DJL's engine starts.
    CompletableFuture<Weights> opening =
        CompletableFuture.supplyAsync(() -> open(arguments[0], folder));
    Criteria<float[], Long> criteria =
        Criteria.builder()
            .setTypes(float[].class, Long.class)
            .optModelPath(folder)
            .optEngine("PyTorch")
            .optOption("hasParameter", "false")
            .optArgument("blockFactory", factory(opening))
            .optTranslator(new ServeByCriteria.Digits())
            .build();
    try (ZooModel<float[], Long> model = criteria.loadModel();
        Predictor<float[], Long> predictor = model.newPredictor()) {
      long digit = predictor.predict(new float[PIXELS]);
      System.out.println(
          "a blank image looks like " + digit + ": " + sinceStart().toMillis() + " ms");
      // One thread answers all, so that one predictor will do.
      HttpServer server =
          NumberServer.start(Integer.parseInt(arguments[2]), Runnable::run, predictor::predict);
      Thread.sleep(Duration.ofSeconds(Integer.parseInt(arguments[3])));
      server.stop(0);
    }
  }

  private static Weights open(String location, Path folder) {
    try {
      return Weights.open(location);
    } catch (TransferException | DeviceUnavailableException e) {
      System.out.println("reading " + folder + ": " + e.getMessage());
      return Weights.open(folder);
    }
  }

  /// The arrays stay valid after the weights are closed. The server counts this process as a
  /// reader while the weights are open, so the load closes them.
  private static BlockFactory factory(CompletableFuture<Weights> opening) {
    return (model, _, _) -> {
      Block block = ServeModel.block();
      try (Weights weights = opening.join()) {
        weights.load(
            model.getNDManager(),
            block,
            ServeByCriteria.NAMES,
            LoadOptions.defaults(),
            new Shape(1, PIXELS));
      }
      return block;
    };
  }

  private static Duration sinceStart() {
    Instant started = ProcessHandle.current().info().startInstant().orElseThrow();
    return Duration.between(started, Instant.now());
  }
}
