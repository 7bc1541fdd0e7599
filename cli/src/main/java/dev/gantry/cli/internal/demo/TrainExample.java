package dev.gantry.cli.internal.demo;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.nio.file.Path;

/// What a training loop does to go on from weights that were trained before: the README shows it.
final class TrainExample {
  private TrainExample() {}

  /// Trains `model`, whose block is a [DigitModel#block].
  static void train(Model model, Path folder, Dataset train)
      throws IOException, TranslateException {
    DefaultTrainingConfig config = new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss());
    try (Trainer trainer = model.newTrainer(config);
        Weights weights = Weights.open(folder)) {
      trainer.initialize(new Shape(1, 64));
      // Into the arrays that the trainer holds already.
      weights.load(
          model.getNDManager(), model.getBlock(), DigitModel.NAMES, LoadOptions.defaults());

      for (Batch batch : trainer.iterateDataset(train)) {
        try (batch) {
          EasyTrain.trainBatch(trainer, batch);
          trainer.step();
        }
      }
    }
  }
}
