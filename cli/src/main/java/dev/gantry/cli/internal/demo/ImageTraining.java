// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Blocks;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.core.Linear;
import ai.djl.nn.pooling.Pool;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EpochTrainingListener;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.listener.TrainingListener;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.GantryDataset;
import dev.gantry.samples.ResumeMidEpoch;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/// The training of [ResumeMidEpoch]: a small convolutional network learns [SampleImages], which it
/// reads from files in random order.
///
/// @param files how the images lie in `folder`
public record ImageTraining(ImageFiles files, Path folder) implements SampleTraining {
  /// DJL's name for the share of the test images that are told right.
  public static final String ACCURACY = "validate_Accuracy";

  /// Writes the images into a new folder.
  public static ImageTraining prepare(ImageFiles files, Path folder) throws IOException {
    files.write(folder);
    return new ImageTraining(files, folder);
  }

  @Override
  public int stepsPerEpoch() {
    return ImageFiles.TRAINING_FILES * ImageFiles.IMAGES_PER_FILE / ImageFiles.IMAGES_PER_BATCH;
  }

  @Override
  public int stepsPerSave() {
    return 20;
  }

  @Override
  public TrainingRun run(Path checkpoints, int epochs, int seed, TrainingListener... listeners)
      throws IOException, TranslateException {
    try (GantryDataset train = files.train(folder);
        GantryDataset test = files.test(folder)) {
      return TrainingRun.of(
          block(),
          seed,
          (model, config) -> {
            config
                .addEvaluator(new Accuracy())
                .addTrainingListeners(new EpochTrainingListener(), new EvaluatorTrainingListener());
            ResumeMidEpoch.train(model, config, checkpoints, train, test, epochs);
          },
          listeners);
    }
  }

  @Override
  public List<String> toArguments() {
    return List.of(files.name(), folder.toString());
  }

  private static Block block() {
    return new SequentialBlock()
        .add(convolution(8))
        .add(Activation.reluBlock())
        .add(halved())
        .add(convolution(16))
        .add(Activation.reluBlock())
        .add(halved())
        .add(Blocks.batchFlattenBlock())
        .add(Linear.builder().setUnits(SampleImages.CLASSES).build());
  }

  private static Block convolution(int filters) {
    return Conv2d.builder()
        .setKernelShape(new Shape(5, 5))
        .optPadding(new Shape(2, 2))
        .setFilters(filters)
        .build();
  }

  private static Block halved() {
    return Pool.maxPool2dBlock(new Shape(2, 2), new Shape(2, 2));
  }
}
