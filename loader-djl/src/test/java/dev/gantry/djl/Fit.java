// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.listener.TrainingListener;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.Training;
import java.io.IOException;
import java.util.Iterator;
import java.util.Random;

/// A training by `EasyTrain.fit`, with batch normalisation, dropout and a validation after each
/// epoch.
final class Fit {
  static final int BATCHES = 4;
  static final int EPOCHS = 3;
  private static final int ROWS = 8;
  private static final int FEATURES = 6;

  private Fit() {}

  static Training training(TrainingListener... listeners) {
    Training.seed(1);
    return new Training(Training.perceptron(), Optimizers.adam(), listeners);
  }

  static void fit(Training training) throws IOException, TranslateException {
    fit(training, EPOCHS);
  }

  static void fit(Training training, int epochs) throws IOException, TranslateException {
    EasyTrain.fit(training.trainer, epochs, samples(training.trainer), validation(training));
  }

  /// Continues a training after a step as [#fit] does, but without notifying the listeners of
  /// epochs.
  static void goOn(Training training, long step) throws IOException, TranslateException {
    Trainer trainer = training.trainer;
    Dataset samples = samples(trainer);
    for (long epoch = step / BATCHES; epoch < EPOCHS; epoch++) {
      Iterator<Batch> batches = trainer.iterateDataset(samples).iterator();
      for (long next = epoch * BATCHES; batches.hasNext(); next++) {
        try (Batch batch = batches.next()) {
          if (next >= step) {
            EasyTrain.trainBatch(trainer, batch);
            trainer.step();
          }
        }
      }
      EasyTrain.evaluateDataset(trainer, validation(training));
    }
  }

  static Dataset samples(Trainer trainer) {
    return dataset(trainer, 11, BATCHES);
  }

  private static Dataset validation(Training training) {
    return dataset(training.trainer, 12, 2);
  }

  private static Dataset dataset(Trainer trainer, long seed, int batches) {
    Random random = new Random(seed);
    int rows = batches * ROWS;
    float[] features = new float[rows * FEATURES];
    for (int i = 0; i < features.length; i++) {
      features[i] = random.nextFloat() - 0.5f;
    }
    float[] labels = new float[rows];
    for (int row = 0; row < rows; row++) {
      labels[row] = random.nextInt(3);
    }
    NDArray data = trainer.getManager().create(features, new Shape(rows, FEATURES));
    return new ArrayDataset.Builder()
        .setData(data)
        .optLabels(trainer.getManager().create(labels))
        .setSampling(ROWS, false)
        .build();
  }
}
