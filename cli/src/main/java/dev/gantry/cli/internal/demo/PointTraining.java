// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.norm.Dropout;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.listener.TrainingListener;
import ai.djl.translate.TranslateException;
import dev.gantry.samples.SaveAndResume;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.SplittableRandom;

/// The training of [SaveAndResume] with samples in memory. It draws random numbers for all that DJL
/// can: the order of the samples, dropout, initial values. Its samples are the same each time.
public record PointTraining() implements SampleTraining {
  private static final int STEPS_PER_EPOCH = 8;
  private static final int ROWS_PER_STEP = 32;
  private static final int FEATURES = 64;
  private static final int CLASSES = 10;
  private static final int DATA_SEED = 20_261_122;

  @Override
  public int stepsPerEpoch() {
    return STEPS_PER_EPOCH;
  }

  @Override
  public int stepsPerSave() {
    return STEPS_PER_EPOCH;
  }

  @Override
  public TrainingRun run(Path checkpoints, int epochs, int seed, TrainingListener... listeners)
      throws IOException, TranslateException {
    return TrainingRun.of(
        block(),
        seed,
        (model, config) ->
            SaveAndResume.train(model, config, checkpoints, samples(model.getNDManager()), epochs),
        listeners);
  }

  @Override
  public List<String> toArguments() {
    return List.of();
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
}
