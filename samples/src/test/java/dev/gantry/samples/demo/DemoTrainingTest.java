// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.norm.Dropout;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Dataset;
import ai.djl.translate.TranslateException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.samples.SaveAndResume;
import dev.gantry.samples.ServeModel;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The samples do what the demo shows of them.
class DemoTrainingTest {
  @TempDir private Path temporary;

  private Path model;

  @BeforeEach
  void extract() throws IOException {
    model = DigitAnswers.extract(temporary);
  }

  @AfterEach
  void nothingIsLeft() {
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void serverAnswersTheExpectedLogits() throws IOException, TranslateException {
    DigitAnswers expected = DigitAnswers.of(model);
    float[] answers = ServeModel.answer(model, expected.questions());
    assertThat(expected.difference(answers)).isLessThanOrEqualTo(expected.tolerance());

    answers[7] += 0.01f;
    assertThat(expected.difference(answers)).isCloseTo(0.01, within(1e-4));
    answers[7] = Float.NaN;
    assertThat(expected.difference(answers)).isNaN();
  }

  /// The second call is as in another process: it has another seed, and a model of its own.
  @Test
  void savedTrainingGoesOnAsIfItHadNotEnded() throws IOException, TranslateException {
    Path checkpoints = temporary.resolve("checkpoints");
    DemoTraining.Run begun = trainOnPoints(checkpoints, 4, 1);
    assertThat(steps(checkpoints)).containsExactly(16L, 24L, 32L);
    DemoTraining.Run resumed = trainOnPoints(checkpoints, 6, 2);
    assertThat(steps(checkpoints)).containsExactly(32L, 40L, 48L);

    DemoTraining.Run uninterrupted = trainOnPoints(temporary.resolve("uninterrupted"), 6, 1);
    assertThat(uninterrupted.losses()).hasSize(48);
    assertThat(begun.losses()).isEqualTo(uninterrupted.losses().subList(0, 32));
    assertThat(resumed.losses()).isEqualTo(uninterrupted.losses().subList(32, 48));
    assertThat(resumed.parameters()).isEqualTo(uninterrupted.parameters());
    assertThat(begun.parameters()).isNotEqualTo(uninterrupted.parameters());
  }

  /// Checkpoints are saved where no epoch ends, and the dataset goes on from there.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void trainingFromFilesGoesOnInTheMiddleOfAnEpoch(boolean records)
      throws IOException, TranslateException {
    DemoTraining training = new DemoTraining(records, temporary.resolve("images"));
    training.writeImages();
    Path checkpoints = temporary.resolve("checkpoints");
    DemoTraining.Run begun = training.run(checkpoints, 1, 1, _ -> {});
    assertThat(begun.losses()).hasSize(63);
    assertThat(steps(checkpoints)).containsExactly(40L, 60L, 63L);
    // A training that was killed has not saved its last step.
    remove(
        CheckpointStore.list(GantrySession.shared(), checkpoints).checkpoints().getLast().folder());
    DemoTraining.Run resumed = training.run(checkpoints, 3, 2, _ -> {});
    assertThat(steps(checkpoints)).containsExactly(160L, 180L, 189L);

    DemoTraining.Run uninterrupted =
        training.run(temporary.resolve("uninterrupted"), 3, 1, _ -> {});
    assertThat(uninterrupted.losses()).hasSize(189);
    assertThat(begun.losses()).isEqualTo(uninterrupted.losses().subList(0, 63));
    assertThat(resumed.losses()).isEqualTo(uninterrupted.losses().subList(60, 189));
    assertThat(resumed.parameters()).isEqualTo(uninterrupted.parameters());
    assertThat(resumed.accuracy()).isEqualTo(uninterrupted.accuracy());
    assertThat(uninterrupted.accuracy()).isGreaterThan(begun.accuracy()).isGreaterThan(0.7f);
  }

  /// The order depends on the sizes of the files and the seed, and values come unchanged.
  @Test
  void trainingIsTheSameFromShardsAndFromTfRecord() throws IOException, TranslateException {
    DemoTraining.Run fromShards = epoch(false);
    assertThat(fromShards.losses()).hasSize(DemoTraining.STEPS_PER_EPOCH);
    assertThat(epoch(true)).isEqualTo(fromShards);
  }

  private DemoTraining.Run epoch(boolean records) throws IOException, TranslateException {
    Path folder = Files.createDirectory(temporary.resolve(Boolean.toString(records)));
    DemoTraining training = new DemoTraining(records, folder.resolve("images"));
    training.writeImages();
    return training.run(folder.resolve("checkpoints"), 1, 1, _ -> {});
  }

  /// Draws random numbers for all that DJL can: the order of the samples, dropout, initial values.
  private static DemoTraining.Run trainOnPoints(Path checkpoints, int epochs, int seed)
      throws IOException, TranslateException {
    SequentialBlock block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(96).build())
            .add(BatchNorm.builder().build())
            .add(Activation.reluBlock())
            .add(Dropout.builder().optRate(0.2f).build())
            .add(Linear.builder().setUnits(10).build());
    return DemoTraining.run(
        block,
        seed,
        (model, config) ->
            SaveAndResume.train(model, config, checkpoints, points(model.getNDManager()), epochs),
        _ -> {});
  }

  /// 256 points around one centre a class.
  private static Dataset points(NDManager manager) {
    SplittableRandom random = new SplittableRandom(20_261_122);
    float[] labels = new float[256];
    float[] features = new float[labels.length * 64];
    for (int row = 0; row < labels.length; row++) {
      int label = random.nextInt(10);
      labels[row] = label;
      for (int i = 0; i < 64; i++) {
        features[row * 64 + i] = (i % 10 == label ? 1 : 0) + (float) random.nextGaussian();
      }
    }
    return new ArrayDataset.Builder()
        .setData(manager.create(features, new Shape(labels.length, 64)))
        .optLabels(manager.create(labels))
        .setSampling(32, true)
        .build();
  }

  private static void remove(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }

  private static List<Long> steps(Path checkpoints) {
    return CheckpointStore.list(GantrySession.shared(), checkpoints).checkpoints().stream()
        .map(CheckpointFolder::step)
        .toList();
  }
}
