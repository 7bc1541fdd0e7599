// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Blocks;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.norm.Dropout;
import ai.djl.nn.pooling.Pool;
import ai.djl.pytorch.jni.JniUtils;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EpochTrainingListener;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.samples.ResumeMidEpoch;
import dev.gantry.samples.SaveAndResume;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// A small training that saves checkpoints and resumes from the latest.
///
/// @param samples what it learns
/// @param images the folder of the images; unused for points
record DemoTraining(Samples samples, Path images) {
  static final int CLASSES = 10;

  /// DJL's name for the share of the test images that are told right.
  static final String ACCURACY = "validate_Accuracy";

  /// What a training learns.
  enum Samples {
    /// Points in memory, the same each time, by the training of [SaveAndResume]. It draws random numbers for
    /// all that DJL can: the order of the samples, dropout, initial values.
    POINTS(8, 8),
    /// Images from raw shards in random order, by the training of [ResumeMidEpoch].
    SHARDS(63, 20),
    /// The same images from TFRecord files.
    TFRECORD(63, 20);

    final int stepsPerEpoch;
    final int stepsPerSave;

    Samples(int stepsPerEpoch, int stepsPerSave) {
      this.stepsPerEpoch = stepsPerEpoch;
      this.stepsPerSave = stepsPerSave;
    }
  }

  /// The result of a training, or of the part of one that this process made.
  ///
  /// @param losses of each step that was made, in order
  /// @param parameters values by path, of those at the end
  /// @param metrics what DJL's evaluators said of the last epoch
  record Run(
      Device device,
      List<Float> losses,
      Map<String, List<Float>> parameters,
      Map<String, Float> metrics) {}

  /// Trains with Adam until so many epochs are made, from the latest checkpoint in `checkpoints` if
  /// there is one; on the first GPU or, where DJL knows of none, on the CPU.
  ///
  /// @param seed of the random numbers, which a checkpoint overrules
  Run run(Path checkpoints, int epochs, int seed, TrainingListener... listeners)
      throws IOException, TranslateException {
    Device device = Engine.getInstance().defaultDevice();
    Engine.getInstance().setRandomSeed(seed);
    // Operators this small gain nothing from more threads, and where others use the cores, too,
    // threads that wait for one another take several times as long.
    int threads = JniUtils.getNumThreads();
    JniUtils.setNumThreads(1);
    try (Model model = Model.newInstance("sample", device)) {
      Recorder recorder = new Recorder();
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
              .optOptimizer(Adam.builder().build())
              .optDevices(new Device[] {device})
              .addTrainingListeners(listeners)
              .addTrainingListeners(recorder);
      train(model, config, checkpoints, epochs);
      Map<String, List<Float>> parameters = new LinkedHashMap<>();
      model
          .getBlock()
          .getParameters()
          .forEach(pair -> parameters.put(pair.getKey(), values(pair.getValue().getArray())));
      return new Run(device, recorder.losses, parameters, recorder.metrics);
    } finally {
      JniUtils.setNumThreads(threads);
    }
  }

  private void train(Model model, DefaultTrainingConfig config, Path checkpoints, int epochs)
      throws IOException, TranslateException {
    if (samples == Samples.POINTS) {
      model.setBlock(pointBlock());
      SaveAndResume.train(model, config, checkpoints, points(model.getNDManager()), epochs);
      return;
    }
    model.setBlock(imageBlock());
    config
        .addEvaluator(new Accuracy())
        .addTrainingListeners(new EpochTrainingListener(), new EvaluatorTrainingListener());
    try (var train = DemoImages.train(samples, images);
        var test = DemoImages.test(samples, images)) {
      ResumeMidEpoch.train(model, config, checkpoints, train, test, epochs);
    }
  }

  private static Block pointBlock() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(96).build())
        .add(BatchNorm.builder().build())
        .add(Activation.reluBlock())
        .add(Dropout.builder().optRate(0.2f).build())
        .add(Linear.builder().setUnits(CLASSES).build());
  }

  private static Block imageBlock() {
    SequentialBlock block = new SequentialBlock();
    for (int filters : new int[] {8, 16}) {
      block
          .add(
              Conv2d.builder()
                  .setKernelShape(new Shape(5, 5))
                  .optPadding(new Shape(2, 2))
                  .setFilters(filters)
                  .build())
          .add(Activation.reluBlock())
          .add(Pool.maxPool2dBlock(new Shape(2, 2), new Shape(2, 2)));
    }
    return block.add(Blocks.batchFlattenBlock()).add(Linear.builder().setUnits(CLASSES).build());
  }

  /// 256 points around one centre a class.
  private static Dataset points(NDManager manager) {
    SplittableRandom random = new SplittableRandom(20_261_122);
    float[] labels = new float[256];
    float[] features = new float[labels.length * 64];
    for (int row = 0; row < labels.length; row++) {
      int label = random.nextInt(CLASSES);
      labels[row] = label;
      for (int i = 0; i < 64; i++) {
        features[row * 64 + i] = (i % CLASSES == label ? 1 : 0) + (float) random.nextGaussian();
      }
    }
    return new ArrayDataset.Builder()
        .setData(manager.create(features, new Shape(labels.length, 64)))
        .optLabels(manager.create(labels))
        .setSampling(32, true)
        .build();
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
