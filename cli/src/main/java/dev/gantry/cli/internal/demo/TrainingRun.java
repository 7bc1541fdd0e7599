// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.nn.Block;
import ai.djl.pytorch.jni.JniUtils;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// What came of a training, or of the part of one that this process made.
///
/// @param device that it ran on
/// @param losses of each step that was made, in order
/// @param parameters values by path, of those at the end
/// @param metrics what DJL's evaluators said of the last epoch
public record TrainingRun(
    Device device,
    List<Float> losses,
    Map<String, List<Float>> parameters,
    Map<String, Float> metrics) {
  public TrainingRun {
    losses = List.copyOf(losses);
    parameters = Map.copyOf(parameters);
    metrics = Map.copyOf(metrics);
  }

  /// The training itself.
  @FunctionalInterface
  public interface Body {
    void train(Model model, DefaultTrainingConfig config) throws IOException, TranslateException;
  }

  /// Trains `block` with Adam, on the first GPU or, where DJL knows of none, on the CPU.
  ///
  /// @param seed of all random numbers that DJL draws
  static TrainingRun of(Block block, int seed, Body body, TrainingListener... listeners)
      throws IOException, TranslateException {
    Device device = Engine.getInstance().defaultDevice();
    Engine.getInstance().setRandomSeed(seed);
    // Operators this small gain nothing from more threads, and where others use the cores, too,
    // threads that wait for one another take several times as long.
    int threads = JniUtils.getNumThreads();
    JniUtils.setNumThreads(1);
    try (Model model = Model.newInstance("sample", device)) {
      model.setBlock(block);
      Recorder recorder = new Recorder();
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
              .optOptimizer(Adam.builder().build())
              .optDevices(new Device[] {device})
              .addTrainingListeners(listeners)
              .addTrainingListeners(recorder);
      body.train(model, config);

      Map<String, List<Float>> parameters = new LinkedHashMap<>();
      model
          .getBlock()
          .getParameters()
          .forEach(pair -> parameters.put(pair.getKey(), values(pair.getValue().getArray())));
      return new TrainingRun(device, recorder.losses, parameters, recorder.metrics);
    } finally {
      JniUtils.setNumThreads(threads);
    }
  }

  private static List<Float> values(NDArray array) {
    List<Float> values = new ArrayList<>();
    for (float value : array.toFloatArray()) {
      values.add(value);
    }
    return List.copyOf(values);
  }

  private static final class Recorder extends TrainingListenerAdapter {
    private final List<Float> losses = new ArrayList<>();
    private Map<String, Float> metrics = Map.of();

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batch) {
      Map<Device, NDList> labels = batch.getLabels();
      batch
          .getPredictions()
          .forEach((device, predictions) -> {
            NDList wanted = labels.getOrDefault(device, new NDList());
            try (NDArray loss = trainer.getLoss().evaluate(wanted, predictions)) {
              losses.add(loss.getFloat());
            }
          });
    }

    @Override
    public void onEpoch(Trainer trainer) {
      Map<String, Float> evaluations = trainer.getTrainingResult().getEvaluations();
      metrics = evaluations == null ? Map.of() : evaluations;
    }
  }
}
