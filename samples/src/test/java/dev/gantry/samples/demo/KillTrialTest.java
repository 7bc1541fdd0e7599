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
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The training that the demo kills.
class KillTrialTest {
  private static final DemoTraining POINTS =
      new DemoTraining(DemoTraining.Samples.POINTS, Path.of("none"));

  @TempDir private Path temporary;

  @AfterEach
  void noJvmIsLeft() {
    assertThat(ProcessHandle.current().children()).isEmpty();
  }

  @Test
  void childTellsOfItsStepsAndDiesWhenItIsKilled() throws IOException {
    Path checkpoints = temporary.resolve("checkpoints");
    try (TrainingChild child = TrainingChild.start(POINTS, checkpoints)) {
      assertThat(child.report()).isEqualTo(new TrainingChild.Report(1, 0));
      TrainingChild.Report report = child.report();
      while (report.saved() == 0) {
        report = child.report();
      }
      TrainingChild.Report last = child.kill(report);
      assertThat(last.step()).isGreaterThanOrEqualTo(report.step());
      assertThat(
              CheckpointStore.list(GantrySession.shared(), checkpoints)
                  .latest()
                  .orElseThrow()
                  .step())
          .isGreaterThanOrEqualTo(report.saved());
    }
  }

  @Test
  void closingItKillsTheChild() throws IOException {
    TrainingChild child = TrainingChild.start(POINTS, temporary.resolve("checkpoints"));
    child.report();
    child.close();
  }

  @Test
  void aTrainingThatEndsByItselfFailsTheCheck() throws IOException {
    Path file = Files.createFile(temporary.resolve("no-folder"));
    try (TrainingChild child = TrainingChild.start(POINTS, file)) {
      assertThatThrownBy(child::report)
          .isInstanceOf(CheckFailedException.class)
          .hasMessageStartingWith("the training ended by itself, with code 1: ")
          .hasMessageContaining(file + " is there, but no folder");
    }
  }

  private static DemoTraining.Run run(Device device, List<Float> losses, float weight) {
    return new DemoTraining.Run(device, losses, Map.of("weight", List.of(weight)), Map.of());
  }

  private static DemoTraining.Run run(List<Float> losses, float weight) {
    return run(Device.cpu(), losses, weight);
  }

  @Test
  void oneBitOfALossOrAParameterFailsTheCheck() {
    DemoTraining.Run whole = run(List.of(1f, 2f, 3f, 4f), 7f);
    KillTrial.compare(whole, run(List.of(3f, 4f), 7f), 2);

    DemoTraining.Run otherLoss = run(List.of(3f, Math.nextUp(4f)), 7f);
    assertThatThrownBy(() -> KillTrial.compare(whole, otherLoss, 2))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("losses")
        .hasMessageContaining("step 2");
    DemoTraining.Run fewer = run(List.of(4f), 7f);
    assertThatThrownBy(() -> KillTrial.compare(whole, fewer, 2)).hasMessageContaining("losses");
    DemoTraining.Run otherWeight = run(List.of(3f, 4f), Math.nextUp(7f));
    assertThatThrownBy(() -> KillTrial.compare(whole, otherWeight, 2))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("parameters");
  }

  /// There two runs of one seed are not the same to the bit.
  @Test
  void onAGpuTheCheckAllowsForTheOrderOfItsSums() {
    DemoTraining.Run whole = run(Device.gpu(), List.of(1f, 2f, 3f), 7f);
    KillTrial.compare(whole, run(Device.gpu(), List.of(2.001f, 3f), 7.001f), 1);
    DemoTraining.Run otherLoss = run(Device.gpu(), List.of(2f, 3.1f), 7f);
    assertThatThrownBy(() -> KillTrial.compare(whole, otherLoss, 1)).hasMessageContaining("losses");
    DemoTraining.Run otherWeight = run(Device.gpu(), List.of(2f, 3f), 7.1f);
    assertThatThrownBy(() -> KillTrial.compare(whole, otherWeight, 1))
        .hasMessageContaining("parameters");
  }

  @Test
  void oneBitOfALossBothHaveFailsTheComparisonOfBeginnings() {
    DemoTraining.Run longer = run(List.of(1f, 2f, 3f), 7f);
    DemoTraining.Run shorter = run(List.of(1f, 2f), 8f);
    assertThat(KillTrial.compareBeginnings(longer, shorter)).isEqualTo(2);
    assertThat(KillTrial.compareBeginnings(shorter, longer)).isEqualTo(2);

    DemoTraining.Run other = run(List.of(1f, 4f), 7f);
    assertThatThrownBy(() -> KillTrial.compareBeginnings(longer, other))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("first 2 steps");
  }
}
