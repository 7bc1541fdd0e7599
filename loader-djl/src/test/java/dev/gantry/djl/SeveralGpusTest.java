// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Blocks;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.EasyTrain;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.EachDevice;
import dev.gantry.djl.internal.training.Training;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// A training on two GPUs of one process. DJL has only one CPU device, so only a host with two
/// GPUs can run it.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class SeveralGpusTest {
  private static final int SAMPLES = 64;
  private static final int BATCH = 8;

  @TempDir private Path folder;
  private Path shards;

  private static Device[] gpus(int count) {
    return Engine.getEngine("PyTorch").getDevices(count);
  }

  @BeforeEach
  void twoGpus() {
    Assumptions.assumeTrue(Engine.getEngine("PyTorch").getGpuCount() > 1, "two GPUs");
    shards = ImageShards.write(folder.resolve("shards"), SAMPLES, 20);
  }

  private ShardDataset.Builder dataset() {
    return ShardDataset.builder()
        .setPath(shards)
        .setSampling(BATCH)
        .optShuffle(5)
        .optData("image")
        .optNormalize("image", 1 / 255f, -0.3f)
        .optPoison(true);
  }

  private static Block block() {
    return new SequentialBlock()
        .add(Blocks.batchFlattenBlock(ImageShards.IMAGE_BYTES))
        .add(Linear.builder().setUnits(12).build())
        .add(Activation.tanhBlock())
        .add(Linear.builder().setUnits(SAMPLES).build());
  }

  private static Block flat(Block block) {
    return new SequentialBlock().add(Blocks.batchFlattenBlock(ImageShards.IMAGE_BYTES)).add(block);
  }

  private static Training training(
      Block block, Supplier<Optimizer> optimizer, int gpus, TrainingListener... listeners) {
    Training.seed(1);
    return new Training(block, optimizer.get(), gpus(gpus), new Shape(BATCH, 3, 5), listeners);
  }

  /// Trains, and returns the mean loss of each batch.
  private static List<Float> train(Trainer trainer, ShardDataset dataset, int batches)
      throws IOException, TranslateException {
    return train(trainer, trainer.iterateDataset(dataset).iterator(), batches);
  }

  private static List<Float> train(Trainer trainer, Iterator<Batch> all, int batches) {
    List<Float> losses = new ArrayList<>();
    while (losses.size() < batches && all.hasNext()) {
      try (Batch batch = all.next()) {
        float sum = 0;
        Batch[] parts = batch.split(trainer.getDevices(), false);
        try (GradientCollector collector = trainer.newGradientCollector()) {
          for (Batch part : parts) {
            NDArray loss =
                trainer.getLoss().evaluate(part.getLabels(), trainer.forward(part.getData()));
            collector.backward(loss);
            sum += loss.getFloat();
          }
        }
        trainer.step();
        losses.add(sum / parts.length);
      }
    }
    return losses;
  }

  @Test
  void eachGpuHasItsPartAndTogetherTheyAreTheBatch() {
    Device[] two = gpus(2);
    try (ShardDataset whole = dataset().build();
        ShardDataset parts = dataset().optDevices(two).build();
        NDManager manager = NDManager.newBaseManager(two[0])) {
      Iterator<Batch> split = parts.getData(manager).iterator();
      for (Batch expected : whole.getData(manager)) {
        try (expected;
            Batch actual = split.next()) {
          assertThat(actual.getSize()).isEqualTo(expected.getSize());
          assertThat(actual.getProgress()).isEqualTo(expected.getProgress());
          assertThatThrownBy(actual::getData)
              .isInstanceOf(MisuseException.class)
              .hasMessageContaining("[gpu(0), gpu(1)] (optDevices)");
          assertThatThrownBy(() -> actual.split(gpus(1), false))
              .isInstanceOf(MisuseException.class)
              .hasMessageContaining("[gpu(0), gpu(1)] (were [gpu(0)])");
          Batch[] each = actual.split(two, false);
          for (int i = 0; i < 2; i++) {
            int from = i * BATCH / 2;
            int to = from + BATCH / 2;
            assertSame(each[i].getData(), expected.getData(), from, to, two[i]);
            assertSame(each[i].getLabels(), expected.getLabels(), from, to, two[i]);
          }
        }
      }
      assertThat(split.hasNext()).isFalse();
      assertThat(parts.statistics().orElseThrow().batches()).isEqualTo(SAMPLES / BATCH);
    }
  }

  private static void assertSame(NDList part, NDList whole, int from, int to, Device device) {
    NDArray actual = part.singletonOrThrow();
    assertThat(actual.getDevice()).isEqualTo(device);
    try (NDArray rows = whole.singletonOrThrow().get(from + ":" + to)) {
      assertThat(actual.toByteArray()).isEqualTo(rows.toByteArray());
    }
  }

  @Test
  void aStateOfTwoGpusIsOneOfOne() {
    try (ShardDataset two = dataset().optDevices(gpus(2)).build();
        ShardDataset one = dataset().build();
        NDManager manager = NDManager.newBaseManager(Device.gpu(0))) {
      Iterator<Batch> batches = two.getData(manager).iterator();
      batches.next().close();
      one.restore(two.state());
      Iterator<Batch> rest = one.getData(manager).iterator();
      try (Batch split = batches.next();
          Batch whole = rest.next()) {
        Batch second = split.split(gpus(2), false)[1];
        assertThat(second.getLabels().singletonOrThrow().toLongArray())
            .isEqualTo(
                Arrays.copyOfRange(
                    whole.getLabels().singletonOrThrow().toLongArray(), BATCH / 2, BATCH));
      }
    }
  }

  static Stream<Named<Supplier<Optimizer>>> optimizers() {
    return Stream.of(
        Named.of("adam", () -> Optimizer.adam().build()),
        Named.of(
            "sgd",
            () ->
                Optimizer.sgd()
                    .setLearningRateTracker(Tracker.fixed(0.2f))
                    .optMomentum(0.9f)
                    .build()));
  }

  @ParameterizedTest
  @MethodSource("optimizers")
  void withTheListenerLossesAreThoseOfOneGpu(Supplier<Optimizer> optimizer) throws Exception {
    List<Float> expected;
    try (Training one = training(block(), optimizer, 1);
        ShardDataset dataset = dataset().optRepeat().build()) {
      expected = train(one.trainer, dataset, 40);
    }
    try (Training two = training(block(), optimizer, 2, new DataParallelListener());
        ShardDataset dataset = dataset().optRepeat().optDevices(gpus(2)).build()) {
      List<Float> losses = train(two.trainer, dataset, 40);
      assertThat(losses).hasSameSizeAs(expected);
      for (int i = 0; i < losses.size(); i++) {
        assertThat(losses.get(i)).as("step %d", i).isCloseTo(expected.get(i), within(1e-3f));
      }
      List<Map<String, List<Byte>>> each = EachDevice.values(two.trainer);
      each.getFirst()
          .forEach((name, bytes) -> {
            if (name.startsWith("model/")) {
              assertThat(each.get(1).get(name)).as(name).isEqualTo(bytes);
            }
          });
    }
  }

  /// Without the listener, DJL's updates leave different values on each device. With Adam the
  /// values would also depend on the order in which DJL updates the parameters, which differs from
  /// run to run.
  @Test
  void aTrainingOnTwoGoesOnBitForBit() throws Exception {
    goesOnBitForBit(() ->
        Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.2f)).optMomentum(0.9f).build());
  }

  /// The running means differ from device to device.
  @Test
  void aTrainingWithTheListenerGoesOnBitForBit() throws Exception {
    goesOnBitForBit(() -> Optimizer.adam().build(), new DataParallelListener());
  }

  /// Checks that a restored training with dropout and batch normalisation continues bit for bit.
  private void goesOnBitForBit(Supplier<Optimizer> optimizer, TrainingListener... listeners)
      throws Exception {
    List<Float> expected;
    List<Map<String, List<Byte>>> atSave;
    List<Map<String, List<Byte>>> atEnd;
    try (Training training = training(flat(Training.perceptron()), optimizer, 2, listeners);
        ShardDataset dataset = labelled().optDevices(gpus(2)).build();
        CheckpointSaver saver = saver()) {
      Iterator<Batch> batches = training.trainer.iterateDataset(dataset).iterator();
      train(training.trainer, batches, 3);
      var _ =
          saver.save(
              SaveRequest.builder()
                  .setStep(3)
                  .setModel(training.model)
                  .optTrainer(training.trainer)
                  .optDataset(dataset)
                  .build());
      atSave = EachDevice.values(training.trainer);
      expected = train(training.trainer, batches, 5);
      atEnd = EachDevice.values(training.trainer);
    }
    assertThat(atSave.get(0)).isNotEqualTo(atSave.get(1));
    try (Training resumed = training(flat(Training.perceptron()), optimizer, 2, listeners);
        ShardDataset dataset = labelled().optDevices(gpus(2)).build();
        CheckpointSaver saver = saver()) {
      RestoredTraining restored = saver.restoreLatest(resumed.model, resumed.trainer).orElseThrow();
      dataset.restore(restored.datasetState().orElseThrow());
      assertThat(EachDevice.values(resumed.trainer)).isEqualTo(atSave);
      assertThat(train(resumed.trainer, dataset, 5)).isEqualTo(expected);
      assertThat(EachDevice.values(resumed.trainer)).isEqualTo(atEnd);
    }
  }

  private ShardDataset.Builder labelled() {
    return dataset()
        .optRepeat()
        .optLabelTransform(labels -> new NDList(labels.singletonOrThrow().mod(3)));
  }

  private CheckpointSaver saver() {
    return CheckpointSaver.builder().setPath(folder.resolve("checkpoints")).build();
  }

  @Test
  void savedOnTwoRestoredOnOneAndBack() throws Exception {
    Supplier<Optimizer> optimizer = () -> Optimizer.adam().build();
    Map<String, List<Byte>> first;
    try (Training two = training(block(), optimizer, 2);
        ShardDataset dataset = dataset().optDevices(gpus(2)).build();
        CheckpointSaver saver = saver()) {
      train(two.trainer, dataset, 3);
      first = EachDevice.values(two.trainer).getFirst();
      assertThat(EachDevice.counts(two.trainer).values()).containsOnly(6);
      var _ = saver.save(3, two.model, two.trainer);
    }
    try (Training one = training(block(), optimizer, 1);
        ShardDataset dataset = dataset().build();
        CheckpointSaver saver = saver()) {
      var _ = saver.restoreLatest(one.model, one.trainer);
      assertThat(EachDevice.values(one.trainer)).containsExactly(first);
      assertThat(EachDevice.counts(one.trainer).values()).containsOnly(3);
      assertThat(train(one.trainer, dataset, 2)).allMatch(Float::isFinite);
      first = EachDevice.values(one.trainer).getFirst();
      var _ = saver.save(5, one.model, one.trainer);
    }
    try (Training two = training(block(), optimizer, 2);
        ShardDataset dataset = dataset().optDevices(gpus(2)).build();
        CheckpointSaver saver = saver()) {
      var _ = saver.restoreLatest(two.model, two.trainer);
      assertThat(EachDevice.values(two.trainer)).containsExactly(first, first);
      assertThat(EachDevice.counts(two.trainer).values()).containsOnly(10);
      assertThat(train(two.trainer, dataset, 2)).allMatch(Float::isFinite);
    }
  }

  @Test
  void easyTrainFits() throws Exception {
    try (Training training = training(block(), () -> Optimizer.adam().build(), 2);
        ShardDataset dataset = dataset().optDevices(gpus(2)).build()) {
      EasyTrain.fit(training.trainer, 3, dataset, dataset);
    }
  }
}
