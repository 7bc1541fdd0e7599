// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.norm.Dropout;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.UpdatingNDArray;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.initializer.Initializer;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// A small training whose batches depend only on the number of the step.
public final class Training implements AutoCloseable {
  private static final int ROWS = 12;
  private static final int FEATURES = 6;

  public final Model model;
  public final Trainer trainer;

  /// Makes a training on one device.
  public Training(Block block, Optimizer optimizer, TrainingListener... listeners) {
    this(
        block,
        optimizer,
        Engine.getEngine("PyTorch").getDevices(1),
        new Shape(ROWS, FEATURES),
        listeners);
  }

  public Training(
      Block block,
      Optimizer optimizer,
      Device[] devices,
      Shape input,
      TrainingListener... listeners) {
    model = Model.newInstance("training", "PyTorch");
    model.setBlock(block);
    trainer =
        model.newTrainer(
            new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
                .optOptimizer(optimizer)
                .optDevices(devices)
                .addTrainingListeners(listeners));
    block.getParameters().values().forEach(Training::makeUpdatable);
    trainer.initialize(input);
  }

  /// Returns a perceptron with dropout and batch normalisation.
  public static Block perceptron() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(10).build())
        .add(BatchNorm.builder().build())
        .add(Activation.reluBlock())
        .add(Dropout.builder().optRate(0.3f).build())
        .add(Linear.builder().setUnits(3).build());
  }

  /// Returns a block that has one linear layer twice.
  public static Block tied() {
    Block shared = Linear.builder().setUnits(FEATURES).build();
    return new SequentialBlock()
        .add(shared)
        .add(Activation.tanhBlock())
        .add(shared)
        .add(Linear.builder().setUnits(3).build());
  }

  public static void seed(int seed) {
    Engine.getEngine("PyTorch").setRandomSeed(seed);
  }

  /// Makes the steps, and returns the bits of each step's loss.
  public List<Integer> steps(int from, int to) {
    List<Integer> losses = new ArrayList<>();
    for (int number = from; number < to; number++) {
      losses.add(Float.floatToRawIntBits(backward(number)));
      trainer.step();
    }
    return losses;
  }

  /// Computes the gradients of a step without the update, and returns its loss.
  public float backward(int number) {
    Random random = new Random(number);
    float[] features = new float[ROWS * FEATURES];
    float[] labels = new float[ROWS];
    for (int i = 0; i < features.length; i++) {
      features[i] = random.nextFloat() - 0.5f;
    }
    for (int row = 0; row < ROWS; row++) {
      labels[row] = random.nextInt(3);
    }
    try (NDManager manager = trainer.getManager().newSubManager()) {
      NDList data = new NDList(manager.create(features, new Shape(ROWS, FEATURES)));
      NDList wanted = new NDList(manager.create(labels, new Shape(ROWS)));
      try (GradientCollector collector = trainer.newGradientCollector()) {
        NDArray loss = trainer.getLoss().evaluate(wanted, trainer.forward(data));
        collector.backward(loss);
        return loss.getFloat();
      }
    }
  }

  /// Makes the arrays of a parameter updatable by the optimizers that DJL's PyTorch engine has no
  /// updates for.
  private static void makeUpdatable(Parameter parameter) {
    Initializer before = parameter.getInitializer();
    parameter.setInitializer((manager, shape, type) ->
        UpdatingNDArray.of((PtNDArray) before.initialize(manager, shape, type)));
  }

  @Override
  public void close() {
    trainer.close();
    model.close();
  }
}
