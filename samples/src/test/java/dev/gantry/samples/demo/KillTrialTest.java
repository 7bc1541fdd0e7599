// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The training that the demo kills.
class KillTrialTest {
  @TempDir private Path temporary;

  @AfterEach
  void noJvmIsLeft() {
    assertThat(ProcessHandle.current().children()).isEmpty();
  }

  private DemoTraining training() throws IOException {
    DemoTraining training = new DemoTraining(false, temporary.resolve("images"));
    training.writeImages();
    return training;
  }

  @Test
  void childTellsOfItsStepsAndDiesWhenItIsKilled() throws IOException {
    Path checkpoints = temporary.resolve("checkpoints");
    try (TrainingChild child = TrainingChild.start(training(), checkpoints)) {
      assertThat(child.step()).isEqualTo(1);
      int saved = 0;
      for (long step = 2; saved == 0; step++) {
        assertThat(child.step()).isEqualTo(step);
        saved = DemoTraining.latest(checkpoints);
      }
      child.kill();
      assertThat(
              CheckpointStore.list(GantrySession.shared(), checkpoints)
                  .latest()
                  .orElseThrow()
                  .step())
          .isGreaterThanOrEqualTo(saved);
    }
  }

  @Test
  void closingItKillsTheChild() throws IOException {
    TrainingChild child = TrainingChild.start(training(), temporary.resolve("checkpoints"));
    child.step();
    child.close();
  }

  @Test
  void aTrainingThatEndsByItselfFailsTheCheck() throws IOException {
    Path file = Files.createFile(temporary.resolve("no-folder"));
    try (TrainingChild child = TrainingChild.start(training(), file)) {
      assertThatThrownBy(child::step)
          .isInstanceOf(CheckFailedException.class)
          .hasMessageStartingWith("the training ended by itself, with code 1: ")
          .hasMessageContaining(file + " exists and is not a folder");
    }
  }

  private static DemoTraining.Run run(Device device, List<Float> losses, float weight) {
    return new DemoTraining.Run(device, losses, List.of(weight), 0);
  }

  private static DemoTraining.Run run(List<Float> losses, float weight) {
    return run(Device.cpu(), losses, weight);
  }

  @Test
  void oneBitOfALossOrAParameterFailsTheCheck() {
    DemoTraining.Run whole = run(List.of(1f, 2f, 3f, 4f), 7f);
    DemoTraining.compare(whole, run(List.of(3f, 4f), 7f), 2);

    DemoTraining.Run otherLoss = run(List.of(3f, Math.nextUp(4f)), 7f);
    assertThatThrownBy(() -> DemoTraining.compare(whole, otherLoss, 2))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("losses")
        .hasMessageContaining("step 2");
    DemoTraining.Run fewer = run(List.of(4f), 7f);
    assertThatThrownBy(() -> DemoTraining.compare(whole, fewer, 2)).hasMessageContaining("losses");
    DemoTraining.Run otherWeight = run(List.of(3f, 4f), Math.nextUp(7f));
    assertThatThrownBy(() -> DemoTraining.compare(whole, otherWeight, 2))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("parameters");
  }

  /// There two runs of one seed are not the same to the bit.
  @Test
  void onAGpuTheCheckAllowsForTheOrderOfItsSums() {
    DemoTraining.Run whole = run(Device.gpu(), List.of(1f, 2f, 3f), 7f);
    DemoTraining.compare(whole, run(Device.gpu(), List.of(2.001f, 3f), 7.001f), 1);
    DemoTraining.Run otherLoss = run(Device.gpu(), List.of(2f, 3.1f), 7f);
    assertThatThrownBy(() -> DemoTraining.compare(whole, otherLoss, 1))
        .hasMessageContaining("losses");
    DemoTraining.Run otherWeight = run(Device.gpu(), List.of(2f, 3f), 7.1f);
    assertThatThrownBy(() -> DemoTraining.compare(whole, otherWeight, 1))
        .hasMessageContaining("parameters");
  }

  @Test
  void oneBitOfALossBothHaveFailsTheComparisonOfBeginnings() {
    DemoTraining.Run longer = run(List.of(1f, 2f, 3f), 7f);
    DemoTraining.Run shorter = run(List.of(1f, 2f), 8f);
    assertThat(DemoTraining.compareBeginnings(longer, shorter)).isEqualTo(2);
    assertThat(DemoTraining.compareBeginnings(shorter, longer)).isEqualTo(2);

    DemoTraining.Run other = run(List.of(1f, 4f), 7f);
    assertThatThrownBy(() -> DemoTraining.compareBeginnings(longer, other))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("first 2 steps");
  }
}
