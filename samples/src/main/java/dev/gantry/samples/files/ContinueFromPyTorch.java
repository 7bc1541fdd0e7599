// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.files;

import ai.djl.Model;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.Checkpoints;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.SaveRequest;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/// Continues a training that PyTorch saved by `torch.distributed.checkpoint`, for one epoch, and
/// saves it so that PyTorch can continue it.
///
/// `FROM` is the folder that PyTorch saved with `get_state_dict`, `TO` a new folder:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ContinueFromPyTorch.java FROM TO
/// ```
public final class ContinueFromPyTorch {
  private ContinueFromPyTorch() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("ContinueFromPyTorch.java FROM TO", arguments);
    // Sequential(Linear(6, 10), BatchNorm1d(10), ReLU(), Linear(10, 3)) in PyTorch
    Block block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(10).build())
            .add(BatchNorm.builder().build())
            .add(Activation.reluBlock())
            .add(Linear.builder().setUnits(3).build());
    ParameterNames names =
        ParameterNames.builder()
            .rule("01Linear_{kind}", "0.{kind}")
            .rule("02BatchNorm_gamma", "1.weight")
            .rule("02BatchNorm_beta", "1.bias")
            .rule("02BatchNorm_runningMean", "1.running_mean")
            .rule("02BatchNorm_runningVar", "1.running_var")
            .rule("04Linear_{kind}", "3.{kind}")
            .ignore("{layer}.num_batches_tracked")
            .build();
    try (Model model = Model.newInstance("continued")) {
      model.setBlock(block);
      try (Trainer trainer = model.newTrainer(config())) {
        trainer.initialize(new Shape(1, 6));
        Map<String, String> values = Checkpoints.restoreDcp(Path.of(arguments[0]), trainer, names);
        long epoch = Long.parseLong(values.getOrDefault("epoch", "0"));
        long step = epoch(trainer, samples(model.getNDManager()));
        Checkpoints.saveDcp(
            SaveRequest.builder()
                .setStep(step)
                .setModel(model)
                .optTrainer(trainer)
                .optEpoch(epoch + 1)
                .build(),
            names,
            Path.of(arguments[1]));
        System.out.println("epochs: " + (epoch + 1));
      }
    }
  }

  /// The optimizer has the same settings as in the PyTorch program.
  private static DefaultTrainingConfig config() {
    return new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
        .optOptimizer(Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.01f)).build());
  }

  /// @return how many steps the epoch had
  private static long epoch(Trainer trainer, Dataset train) throws IOException, TranslateException {
    long steps = 0;
    for (Batch batch : trainer.iterateDataset(train)) {
      try (batch) {
        EasyTrain.trainBatch(trainer, batch);
        trainer.step();
        steps++;
      }
    }
    return steps;
  }

  /// Stands for your own samples.
  private static Dataset samples(NDManager manager) {
    return new ArrayDataset.Builder()
        .setData(manager.randomNormal(new Shape(64, 6)))
        .optLabels(manager.randomInteger(0, 3, new Shape(64), DataType.INT64))
        .setSampling(16, true)
        .build();
  }
}
