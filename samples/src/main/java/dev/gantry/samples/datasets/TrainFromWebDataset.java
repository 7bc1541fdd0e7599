// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.datasets;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Blocks;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.WebDataset;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.webdataset.MemberField;
import dev.gantry.samples.Usage;
import java.io.IOException;

/// Trains a network from WebDataset archives, whose samples have a picture and a class: `000000.jpg` and
/// `000000.cls`, and so on.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TrainFromWebDataset.java 'train-{000..127}.tar' CLASSES
/// ```
public final class TrainFromWebDataset {
  private static final int EPOCHS = 3;
  private static final int SIDE = 64;

  private TrainFromWebDataset() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("TrainFromWebDataset.java 'train-{000..127}.tar' CLASSES", arguments);
    try (WebDataset train = batches(arguments[0]);
        Model model = Model.newInstance("pictures")) {
      model.setBlock(block(Integer.parseInt(arguments[1])));
      System.out.println("accuracy: " + train(model, train));
    }
  }

  /// Batches of (3, height, width) numbers from 0 to 1, in random order, cut and mirrored at random.
  private static WebDataset batches(String archives) {
    ImageDecoding decoding = ImageDecoding.of(SIDE, SIDE).randomResizedCrop().flip();
    return WebDataset.builder()
        .setPath(archives)
        .addField(MemberField.image("jpg;jpeg;png", decoding))
        .addField(MemberField.integer("cls"))
        .setSampling(8)
        .optShuffle(42)
        .optNormalize("jpg", 1 / 255f, 0)
        .optChannelsFirst("jpg")
        .build();
  }

  private static Block block(int classes) {
    return new SequentialBlock()
        .add(
            Conv2d.builder()
                .setFilters(8)
                .setKernelShape(new Shape(8, 8))
                .optStride(new Shape(8, 8))
                .build())
        .add(Activation.reluBlock())
        .add(Blocks.batchFlattenBlock())
        .add(Linear.builder().setUnits(classes).build());
  }

  /// @return the accuracy in the last epoch
  private static float train(Model model, WebDataset train) throws IOException, TranslateException {
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
            .optOptimizer(Adam.builder().build())
            .addEvaluator(new Accuracy())
            .addTrainingListeners(new EvaluatorTrainingListener());
    try (Trainer trainer = model.newTrainer(config)) {
      trainer.initialize(new Shape(1, 3, SIDE, SIDE));
      EasyTrain.fit(trainer, EPOCHS, train, null);
      return trainer.getTrainingResult().getTrainEvaluation("Accuracy");
    }
  }
}
