package dev.gantry.samples;

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
import dev.gantry.djl.ShardDataset;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// The [DatasetExample]'s training: a small convolutional network learns [SampleImages], which it
/// reads from files in an order of chance.
///
/// @param images a folder with raw shards in `train` and `test`
record ImageTraining(Path images) implements SampleTraining {
  static final int TRAINING_IMAGES = 2016;
  static final int TEST_IMAGES = 512;

  /// DJL's name for the share of the test images that are told right.
  static final String ACCURACY = "validate_Accuracy";

  private static final String TRAIN = "train";
  private static final String TEST = "test";
  private static final int IMAGES_PER_STEP = 32;
  private static final int IMAGES_PER_SHARD = 504;
  private static final long DATA_SEED = 20_261_123;

  /// Writes the images into a new folder.
  static ImageTraining prepare(Path folder) throws IOException {
    Files.createDirectory(folder);
    SampleImages.write(folder.resolve(TRAIN), DATA_SEED, TRAINING_IMAGES, IMAGES_PER_SHARD);
    SampleImages.write(folder.resolve(TEST), DATA_SEED + 1, TEST_IMAGES, TEST_IMAGES);
    return new ImageTraining(folder);
  }

  @Override
  public int stepsPerEpoch() {
    return TRAINING_IMAGES / IMAGES_PER_STEP;
  }

  @Override
  public int stepsPerSave() {
    return 20;
  }

  @Override
  public TrainingRun run(Path checkpoints, int epochs, int seed, TrainingListener... listeners)
      throws IOException, TranslateException {
    try (ShardDataset train = DatasetExample.shards(images.resolve(TRAIN));
        ShardDataset test = test()) {
      return TrainingRun.of(
          block(),
          seed,
          (model, config) -> {
            config
                .addEvaluator(new Accuracy())
                .addTrainingListeners(new EpochTrainingListener(), new EvaluatorTrainingListener());
            DatasetExample.train(model, config, checkpoints, train, test, epochs);
          },
          listeners);
    }
  }

  /// In the order of the files, so that sums over it are the same each time.
  private ShardDataset test() {
    return ShardDataset.builder()
        .setPath(images.resolve(TEST))
        .setSampling(IMAGES_PER_STEP)
        .optNormalize("image", 1 / 255f, 0)
        .build();
  }

  @Override
  public List<String> toArguments() {
    return List.of(images.toString());
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
