// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.Retention;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A server opens the checkpoints of a training that has their folder open.
@ExtendWith(NoLeaks.class)
class ReadBesideTrainingTest {
  @TempDir private Path folder;
  private Training training;
  private CheckpointSaver saver;

  @BeforeEach
  void begin() {
    training = new Training(Training.perceptron(), Optimizers.adam());
    saver = CheckpointSaver.builder().setPath(folder).optKeepLast(2).build();
  }

  @AfterEach
  void end() {
    saver.close();
    training.close();
  }

  @Test
  void theLatestIsLoadedIntoABlockOfTheServers() {
    assertThat(Checkpoints.at(folder).openLatest()).isEmpty();
    save(1, 0.5);
    float[] latest = save(2, 0.7);
    try (Weights weights = Checkpoints.at(folder).openLatest().orElseThrow();
        Model served = Model.newInstance("served")) {
      served.setBlock(Training.perceptron());
      LoadReport report =
          weights.load(
              served.getNDManager(),
              served.getBlock(),
              ParameterNames.same(),
              LoadOptions.defaults(),
              new Shape(1, 6));
      assertThat(report.unexpected()).isEmpty();
      assertThat(served.getBlock().isInitialized()).isTrue();
      NDArray bias = served.getBlock().getParameters().get("01Linear_weight").getArray();
      assertThat(bias.toFloatArray()).isEqualTo(latest);
    }
  }

  @Test
  void theBestIsOpenedByItsMetric() {
    save(1, 0.9);
    save(2, 0.7);
    assertThat(best("accuracy", Retention.Goal.MAXIMIZE)).contains("gantry-step-1");
    assertThat(best("accuracy", Retention.Goal.MINIMIZE)).contains("gantry-step-2");
  }

  @Test
  void aMetricThatNoCheckpointHasIsRefusedWithThoseThatThereAre() {
    assertThat(Checkpoints.at(folder).openBest("loss", Retention.Goal.MINIMIZE)).isEmpty();
    save(1, Map.of());
    assertThat(Checkpoints.at(folder).openBest("loss", Retention.Goal.MINIMIZE)).isEmpty();
    save(2, Map.of("loss", Double.NaN));
    assertThat(Checkpoints.at(folder).openBest("loss", Retention.Goal.MINIMIZE)).isEmpty();
    save(3, Map.of("accuracy", 0.5));
    assertThatThrownBy(() -> Checkpoints.at(folder).openBest("los", Retention.Goal.MINIMIZE))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "metric is \"los\", which no checkpoint in %s has: they have accuracy, loss", folder);
  }

  @Test
  void theFolderOfARunIsNoWeightsAndTheErrorNamesACheckpoint() {
    save(1, 0.5);
    assertThatThrownBy(() -> Weights.open(folder))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("the folder has no weights")
        .hasMessageEndingWith("; it has checkpoints; name one, such as gantry-step-1");
  }

  @Test
  void aFileInPlaceOfTheFolderIsRefused() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    assertThatThrownBy(() -> Checkpoints.at(file).openLatest())
        .isInstanceOf(MisuseException.class)
        .hasMessage("checkpoints are in folders (was the file " + file + ")");
  }

  @Test
  void aDamagedLatestIsAnError() throws IOException {
    save(1, 0);
    Files.delete(folder.resolve("gantry-step-1").resolve("model.safetensors"));
    assertThatThrownBy(() -> Checkpoints.at(folder).openLatest())
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll("model.safetensors", "missing-file");
  }

  @Test
  void oneThatTheTrainingRemovedIsAnErrorAndTheLatestCanBeOpenedAnew() {
    save(1, 0);
    try (Weights weights = Checkpoints.at(folder).openLatest().orElseThrow()) {
      save(2, 0);
      save(3, 0);
      assertThatThrownBy(() -> weights.load(training.model.getNDManager()))
          .isInstanceOf(TransferException.class)
          .hasMessageContainingAll("gantry-step-1", "ENOENT");
    }
    try (Weights again = Checkpoints.at(folder).openLatest().orElseThrow()) {
      again.load(training.model.getNDManager()).close();
    }
  }

  private String best(String metric, Retention.Goal goal) {
    try (Weights weights = Checkpoints.at(folder).openBest(metric, goal).orElseThrow()) {
      return weights.files().getFirst().toString();
    }
  }

  /// Makes a step, saves it, and returns one of the parameters.
  private float[] save(int step, double accuracy) {
    return save(step, Map.of("accuracy", accuracy));
  }

  private float[] save(int step, Map<String, Double> metrics) {
    training.steps(step - 1, step);
    SaveRequest.Builder request =
        SaveRequest.builder().setStep(step).setModel(training.model).optTrainer(training.trainer);
    metrics.forEach(request::optMetric);
    var _ = saver.save(request.build());
    return training
        .model
        .getBlock()
        .getParameters()
        .get("01Linear_weight")
        .getArray()
        .toFloatArray();
  }
}
