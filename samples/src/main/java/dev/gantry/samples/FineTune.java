// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.nio.file.Path;

/// Continues from trained weights with a new last layer: the first layers are loaded into the
/// arrays of an initialised trainer, the last one starts from random values.
///
/// `FOLDER` holds the weights of a classifier of 8 × 8 digits, such as
/// `samples/src/main/resources/model`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' FineTune.java FOLDER
/// ```
public final class FineTune {
  /// Maps DJL's names to the layers in the file. The new layer has no tensor.
  static final ParameterNames NAMES =
      ParameterNames.builder()
          .rule("01Linear_{kind}", "fc1.{kind}")
          .rule("03Linear_{kind}", "fc2.{kind}")
          .build();

  private FineTune() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("FineTune.java FOLDER", arguments);
    try (Model model = Model.newInstance("parity")) {
      model.setBlock(block());
      LoadReport report = train(model, Path.of(arguments[0]), samples(model.getNDManager()));
      System.out.println("loaded: " + report.loaded());
      System.out.println("not in the file: " + report.missing());
      System.out.println("unexpected: " + report.unexpected());
    }
  }

  /// The layers of the digit classifier, with two classes instead of ten.
  static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(96).build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(80).build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(2).build());
  }

  static LoadReport train(Model model, Path folder, Dataset train)
      throws IOException, TranslateException {
    DefaultTrainingConfig config = new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss());
    try (Trainer trainer = model.newTrainer(config);
        Weights weights = Weights.open(folder)) {
      trainer.initialize(new Shape(1, 64));
      // Into the arrays that the trainer holds already. The last layer has no tensor.
      LoadOptions options = LoadOptions.builder().optPartial(true).build();
      LoadReport report = weights.load(model.getNDManager(), model.getBlock(), NAMES, options);

      for (Batch batch : trainer.iterateDataset(train)) {
        try (batch) {
          EasyTrain.trainBatch(trainer, batch);
          trainer.step();
        }
      }
      return report;
    }
  }

  /// Stands for your own samples.
  private static Dataset samples(NDManager manager) {
    return new ArrayDataset.Builder()
        .setData(manager.randomNormal(new Shape(256, 64)))
        .optLabels(manager.randomInteger(0, 2, new Shape(256), DataType.INT64))
        .setSampling(32, true)
        .build();
  }
}
