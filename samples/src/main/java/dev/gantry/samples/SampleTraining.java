package dev.gantry.samples;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.norm.Dropout;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// A small training on the CPU, the [SaveExample]'s, that draws random numbers for all that DJL
/// can: the order of the samples, dropout, initial values. Its samples are the same each time.
///
/// @param lossBits of each step that was made, in order
/// @param parameters SHA-256 by path, of those at the end
record SampleTraining(List<Integer> lossBits, Map<String, String> parameters) {
  static final int STEPS_PER_EPOCH = 8;

  private static final int ROWS_PER_STEP = 32;
  private static final int FEATURES = 64;
  private static final int CLASSES = 10;
  private static final int DATA_SEED = 20_261_122;

  SampleTraining {
    lossBits = List.copyOf(lossBits);
    parameters = Map.copyOf(parameters);
  }

  /// Trains, from the latest checkpoint in `checkpoints` if there is one.
  ///
  /// @param seed of the random numbers, which a checkpoint overrules
  static SampleTraining run(Path checkpoints, int epochs, int seed, TrainingListener... listeners)
      throws IOException, TranslateException {
    Engine.getInstance().setRandomSeed(seed);
    try (Model model = Model.newInstance("sample", Device.cpu())) {
      model.setBlock(block());
      LossRecorder recorder = new LossRecorder();
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
              .optOptimizer(Adam.builder().build())
              .optDevices(new Device[] {Device.cpu()})
              .addTrainingListeners(recorder)
              .addTrainingListeners(listeners);
      SaveExample.train(model, config, checkpoints, samples(model.getNDManager()), epochs);

      Map<String, String> parameters = new LinkedHashMap<>();
      model
          .getBlock()
          .getParameters()
          .forEach(
              pair -> parameters.put(pair.getKey(), ArrayDigest.of(pair.getValue().getArray())));
      return new SampleTraining(recorder.lossBits, parameters);
    }
  }

  private static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(96).build())
        .add(BatchNorm.builder().build())
        .add(Activation.reluBlock())
        .add(Dropout.builder().optRate(0.2f).build())
        .add(Linear.builder().setUnits(CLASSES).build());
  }

  /// Points around one centre a class.
  private static Dataset samples(NDManager manager) {
    SplittableRandom random = new SplittableRandom(DATA_SEED);
    int rows = STEPS_PER_EPOCH * ROWS_PER_STEP;
    float[] features = new float[rows * FEATURES];
    float[] labels = new float[rows];
    for (int row = 0; row < rows; row++) {
      int label = random.nextInt(CLASSES);
      labels[row] = label;
      for (int i = 0; i < FEATURES; i++) {
        features[row * FEATURES + i] =
            (i % CLASSES == label ? 1 : 0) + (float) random.nextGaussian();
      }
    }
    return new ArrayDataset.Builder()
        .setData(manager.create(features, new Shape(rows, FEATURES)))
        .optLabels(manager.create(labels))
        .setSampling(ROWS_PER_STEP, true)
        .build();
  }

  private static final class LossRecorder extends TrainingListenerAdapter {
    private final List<Integer> lossBits = new ArrayList<>();

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batch) {
      Map<Device, NDList> labels = batch.getLabels();
      batch
          .getPredictions()
          .forEach((device, predictions) -> {
            NDList wanted = labels.getOrDefault(device, new NDList());
            try (NDArray loss = trainer.getLoss().evaluate(wanted, predictions)) {
              lossBits.add(Float.floatToRawIntBits(loss.getFloat()));
            }
          });
    }
  }
}
