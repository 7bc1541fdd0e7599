// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.translate.NoopTranslator;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LiveWeights;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Replaces the weights of a block, and moves them to host memory and back, while another thread
/// predicts. Each answer must be that of a single version of the weights.
final class Refreshes extends Activity {
  private static final Fault[] FAULTS = {
    Fault.CANCEL, Fault.INTERRUPT, Fault.FILES, Fault.SESSION, Fault.CONSUMER
  };
  private static final int UNITS = 512;
  private static final int LAYERS = 3;
  private static final int VERSIONS = 3;
  private static final long PAUSE_NANOS = 1_000_000;

  private final List<Path> versions = new ArrayList<>();
  private final Model model;
  private final LiveWeights live;
  private final Thread predictions;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private volatile boolean over;

  Refreshes(Scene scene, int number) throws Exception {
    super(scene, number);
    Path folder = Files.createDirectories(scene.folder().resolve("refreshes-" + number));
    try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
      for (int version = 0; version < VERSIONS; version++) {
        NDList arrays = new NDList();
        for (int layer = 1; layer <= LAYERS; layer++) {
          // Each output of a layer is `version + 1` times the sum of its inputs, divided by their
          // number.
          NDArray weight =
              manager.full(new Shape(UNITS, UNITS), (version + 1f) / UNITS, DataType.FLOAT32);
          weight.setName("0" + layer + "Linear_weight");
          NDArray bias = manager.zeros(new Shape(UNITS));
          bias.setName("0" + layer + "Linear_bias");
          arrays.add(weight);
          arrays.add(bias);
        }
        Path file = folder.resolve(version + ".safetensors");
        WeightsWriter.builder().setFile(file).optSession(scene.session()).build().write(arrays);
        versions.add(file);
      }
    }
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < LAYERS; i++) {
      block.add(Linear.builder().setUnits(UNITS).build());
    }
    model = Model.newInstance("soak", device, "PyTorch");
    load(block);
    live = LiveWeights.of(block);
    model.setBlock(live.block());
    predictions = Thread.ofPlatform().name("soak-predictions").start(this::predictAll);
  }

  private void load(Block block) {
    try (Weights weights = Weights.open(versions.getFirst(), scene.session())) {
      var _ =
          weights.load(
              model.getNDManager(),
              block,
              ParameterNames.same(),
              LoadOptions.defaults(),
              new Shape(1, UNITS));
    }
  }

  private void predictAll() {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
        NDManager manager = NDManager.newBaseManager(device, "PyTorch")) {
      NDArray ones = manager.ones(new Shape(1, UNITS));
      while (!over) {
        try (NDList answers = predictor.predict(new NDList(ones))) {
          verify(answers.singletonOrThrow().toFloatArray());
          scene.tally().operation("prediction beside refreshes");
          // The pause leaves the cores to other activities.
          LockSupport.parkNanos(PAUSE_NANOS);
        } catch (Exception e) {
          // Predictions are refused while the weights are offloaded, or after a failed refresh has
          // mixed two versions.
          if (!isRefusal(e)) {
            throw e;
          }
        }
      }
    } catch (Exception | Error e) {
      failure.set(e);
    }
  }

  private static boolean isRefusal(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof MisuseException) {
        return true;
      }
    }
    return false;
  }

  private static void verify(float[] answer) {
    float first = answer[0];
    int version = Math.round((float) Math.cbrt(first)) - 1;
    float expected = (float) Math.pow(version + 1, LAYERS);
    for (float each : answer) {
      if (version < 0 || version >= VERSIONS || Math.abs(each - expected) > 0.01 * expected) {
        throw new WrongBytesException("an answer is " + each + ", of no version");
      }
    }
  }

  @Override
  void round() throws Exception {
    Path version = versions.get(random.nextInt(VERSIONS));
    if (random.nextInt(4) == 0) {
      attempt(
          "offload and restore",
          Fault.NONE,
          _ -> {
            live.offload();
            live.restore();
          });
    } else if (!attempt("refresh", anyOf(FAULTS), trial -> refresh(trial, version))) {
      attempt(
          "refresh after one that failed",
          Fault.NONE,
          trial -> refresh(trial, versions.getFirst()));
    }
    Throwable failed = failure.get();
    if (failed != null) {
      throw new UnexpectedException("prediction beside refreshes: " + failed, failed);
    }
  }

  private void refresh(Trial trial, Path version) {
    try (Weights weights = Weights.open(version, trial.session())) {
      var _ =
          live.refresh(
              weights,
              ParameterNames.same(),
              LoadOptions.builder()
                  .optThreads(1 + random.nextInt(3))
                  .optCancellation(trial.cancellation())
                  .optProgress(trial.progress())
                  .build());
    }
  }

  @Override
  public void close() throws IOException {
    over = true;
    try {
      predictions.join();
    } catch (InterruptedException e) {
      throw new InterruptedIOException();
    }
    live.close();
    model.close();
  }
}
