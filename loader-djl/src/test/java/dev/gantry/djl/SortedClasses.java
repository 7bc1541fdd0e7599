// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
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
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordShards;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;

/// Points of ten classes that are sorted by class, like many folders of images; and a training
/// whose accuracy shows whether batches mix the classes.
final class SortedClasses {
  static final int CLASSES = 10;
  static final int SAMPLES = 6000;
  private static final int OF_CLASS = SAMPLES / CLASSES;
  private static final int FEATURES = 16;
  private static final int BATCH = 32;

  private SortedClasses() {}

  static int label(int sample) {
    return sample / OF_CLASS;
  }

  /// @param seed the seed of the noise; the classes are always the same
  private static float[] points(long seed) {
    Random classes = new Random(1);
    float[] centres = new float[CLASSES * FEATURES];
    for (int i = 0; i < centres.length; i++) {
      centres[i] = (float) classes.nextGaussian();
    }
    Random noise = new Random(seed);
    float[] points = new float[SAMPLES * FEATURES];
    for (int i = 0; i < points.length; i++) {
      int ofCentre = label(i / FEATURES) * FEATURES + i % FEATURES;
      points[i] = centres[ofCentre] + 1.1f * (float) noise.nextGaussian();
    }
    return points;
  }

  private static float[] point(float[] points, int sample) {
    float[] point = new float[FEATURES];
    System.arraycopy(points, sample * FEATURES, point, 0, FEATURES);
    return point;
  }

  static Path shards(Path folder) {
    List<Field> fields =
        List.of(
            new Field("x", DType.F32, TensorShape.of(FEATURES)),
            new Field("label", DType.I64, TensorShape.of()));
    float[] points = points(2);
    try (GantrySession session = GantrySession.open();
        ShardWriter writer =
            ShardWriter.create(
                session, folder, fields, ShardOptions.defaults().withSamplesPerShard(1024))) {
      for (int i = 0; i < SAMPLES; i++) {
        writer.append(
            Map.of(
                "x", MemorySegment.ofArray(point(points, i)),
                "label", MemorySegment.ofArray(new long[] {label(i)})));
      }
      var _ = writer.finish();
    }
    return folder;
  }

  static List<Path> records(Path folder, Compression compression) {
    float[] points = points(2);
    int files = 4;
    try (GantrySession session = GantrySession.open();
        TfRecordShards writer =
            TfRecordShards.create(session, folder, "sorted", files, compression)) {
      for (int i = 0; i < SAMPLES; i++) {
        byte[] example =
            new ExampleBuilder().floats("x", point(points, i)).int64s("label", label(i)).toBytes();
        writer.write(i / (SAMPLES / files), MemorySegment.ofArray(example));
      }
      writer.commit();
    }
    return TfRecordShards.files(folder, "sorted", files);
  }

  /// Returns the number of classes in each full batch of an epoch.
  static List<Integer> classes(Dataset dataset, NDManager manager) throws Exception {
    List<Integer> classes = new ArrayList<>();
    for (Batch batch : dataset.getData(manager)) {
      try (batch) {
        if (batch.getSize() == BATCH) {
          TreeSet<Long> seen = new TreeSet<>();
          for (long label : batch.getLabels().singletonOrThrow().toLongArray()) {
            seen.add(label);
          }
          classes.add(seen.size());
        }
      }
    }
    return classes;
  }

  /// Returns DJL's own dataset in memory, with DJL's shuffle.
  static Dataset inMemory(NDManager manager) {
    return new ArrayDataset.Builder()
        .setData(manager.create(points(2), new Shape(SAMPLES, FEATURES)))
        .optLabels(labels(manager))
        .setSampling(BATCH, true)
        .build();
  }

  private static NDArray labels(NDManager manager) {
    long[] labels = new long[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
      labels[i] = label(i);
    }
    return manager.create(labels);
  }

  /// Trains a network with batch normalisation on the dataset, and returns its accuracy on unseen
  /// samples.
  static double accuracy(Dataset train) throws Exception {
    Training.seed(5);
    SequentialBlock block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(32).build())
            .add(BatchNorm.builder().build())
            .add(Activation.reluBlock())
            .add(Linear.builder().setUnits(CLASSES).build());
    try (Model model = Model.newInstance("sorted", "PyTorch")) {
      model.setBlock(block);
      Optimizer adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.003f)).build();
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss()).optOptimizer(adam);
      try (Trainer trainer = model.newTrainer(config)) {
        trainer.initialize(new Shape(1, FEATURES));
        for (int epoch = 0; epoch < 2; epoch++) {
          for (Batch batch : trainer.iterateDataset(train)) {
            try (batch) {
              EasyTrain.trainBatch(trainer, batch);
              trainer.step();
            }
          }
        }
        NDManager manager = trainer.getManager();
        NDArray unseen = manager.create(points(3), new Shape(SAMPLES, FEATURES));
        NDArray answers = trainer.evaluate(new NDList(unseen)).singletonOrThrow().argMax(1);
        return (double) answers.eq(labels(manager)).sum().getLong() / SAMPLES;
      }
    }
  }
}
