// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import com.sun.net.httpserver.HttpServer;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.djl.Checkpoints;
import dev.gantry.djl.LiveWeights;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/// A server that switches to each new checkpoint of a training without a restart.
///
/// `FOLDER` is the folder to which [SaveAndResume] saves its checkpoints. `PORT` 0 stands for any
/// free port. The server ends after `SECONDS`. [NumberServer] describes the requests.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' RefreshServer.java FOLDER PORT SECONDS
/// ```
public final class RefreshServer {
  private RefreshServer() {}

  public static void main(String[] arguments) throws IOException, InterruptedException {
    Usage.check("RefreshServer.java FOLDER PORT SECONDS", arguments);
    Path folder = Path.of(arguments[0]);
    int port = Integer.parseInt(arguments[1]);
    int seconds = Integer.parseInt(arguments[2]);
    Block block = Linear.builder().setUnits(10).build();
    try (Model model = Model.newInstance("points")) {
      List<Location> loaded = load(model.getNDManager(), block, folder);
      try (LiveWeights live = LiveWeights.of(block);
          ExecutorService threads = Executors.newFixedThreadPool(2)) {
        model.setBlock(live.block());
        HttpServer server = NumberServer.start(port, threads, numbers -> answer(model, numbers));
        for (; seconds > 0; seconds--) {
          Thread.sleep(Duration.ofSeconds(1));
          loaded = refresh(live, folder, loaded);
        }
        server.stop(1);
      }
    }
  }

  private static List<Location> load(NDManager manager, Block block, Path folder) {
    try (Weights weights = Checkpoints.at(folder).openLatest().orElseThrow()) {
      weights.load(manager, block, ParameterNames.same(), LoadOptions.defaults(), new Shape(1, 64));
      return List.copyOf(weights.files());
    }
  }

  /// @param loaded the files whose weights are served
  /// @return the files whose weights are served now
  private static List<Location> refresh(LiveWeights live, Path folder, List<Location> loaded) {
    try (Weights latest = Checkpoints.at(folder).openLatest().orElseThrow()) {
      if (!latest.files().equals(loaded)) {
        // Predictions that have begun end with the old weights; later ones wait for the new.
        live.refresh(latest, ParameterNames.same(), LoadOptions.defaults());
        System.out.println("serving " + latest.files());
      }
      return List.copyOf(latest.files());
    } catch (GantryException e) {
      // The training may have removed this checkpoint after a newer one. The next look finds that.
      System.out.println(e.getMessage());
      return loaded;
    }
  }

  private static long answer(Model model, float[] point) throws TranslateException {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
        NDManager manager = model.getNDManager().newSubManager()) {
      NDArray input = manager.create(point, new Shape(1, 64));
      try (NDList scores = predictor.predict(new NDList(input));
          NDArray best = scores.singletonOrThrow().argMax()) {
        return best.getLong();
      }
    }
  }
}
