package dev.gantry.samples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.formats.checkpoint.CheckpointStore;
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
  @TempDir private Path temporary;

  @AfterEach
  void noJvmIsLeft() {
    assertThat(ProcessHandle.current().children()).isEmpty();
  }

  @Test
  void childTellsOfItsStepsAndDiesWhenItIsKilled() throws IOException {
    Path checkpoints = temporary.resolve("checkpoints");
    try (TrainingChild child = TrainingChild.start(new PointTraining(), checkpoints)) {
      assertThat(child.report()).isEqualTo(new TrainingChild.Report(1, 0));
      TrainingChild.Report report = child.report();
      while (report.saved() == 0) {
        report = child.report();
      }
      TrainingChild.Report last = child.kill(report);
      assertThat(last.step()).isGreaterThanOrEqualTo(report.step());
      assertThat(CheckpointStore.list(checkpoints).latest().orElseThrow().step())
          .isGreaterThanOrEqualTo(report.saved());
    }
  }

  @Test
  void childIsKilledByWhoeverClosesIt() throws IOException {
    TrainingChild child =
        TrainingChild.start(new PointTraining(), temporary.resolve("checkpoints"));
    child.report();
    child.close();
  }

  @Test
  void aTrainingThatEndsByItselfFailsTheCheck() throws IOException {
    Path file = Files.createFile(temporary.resolve("no-folder"));
    try (TrainingChild child = TrainingChild.start(new PointTraining(), file)) {
      assertThatThrownBy(child::report)
          .isInstanceOf(CheckFailedException.class)
          .hasMessageStartingWith("the training ended by itself, with code 1: ")
          .hasMessageContaining(file + ": errno 17 EEXIST");
    }
  }

  @Test
  void oneBitOfALossOrAParameterFailsTheCheck() {
    TrainingRun whole = new TrainingRun(List.of(1, 2, 3, 4), Map.of("weight", "ab"), Map.of());
    KillTrial.compare(whole, new TrainingRun(List.of(3, 4), Map.of("weight", "ab"), Map.of()), 2);

    TrainingRun otherLoss = new TrainingRun(List.of(3, 5), Map.of("weight", "ab"), Map.of());
    assertThatThrownBy(() -> KillTrial.compare(whole, otherLoss, 2))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("losses")
        .hasMessageContaining("step 2");
    TrainingRun fewer = new TrainingRun(List.of(4), Map.of("weight", "ab"), Map.of());
    assertThatThrownBy(() -> KillTrial.compare(whole, fewer, 2)).hasMessageContaining("losses");
    TrainingRun otherWeight = new TrainingRun(List.of(3, 4), Map.of("weight", "ac"), Map.of());
    assertThatThrownBy(() -> KillTrial.compare(whole, otherWeight, 2))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("parameters");
  }

  @Test
  void oneBitOfALossBothHaveFailsTheComparisonOfBeginnings() {
    TrainingRun longer = new TrainingRun(List.of(1, 2, 3), Map.of("weight", "ab"), Map.of());
    TrainingRun shorter = new TrainingRun(List.of(1, 2), Map.of("weight", "ac"), Map.of());
    assertThat(KillTrial.compareBeginnings(longer, shorter)).isEqualTo(2);
    assertThat(KillTrial.compareBeginnings(shorter, longer)).isEqualTo(2);

    TrainingRun other = new TrainingRun(List.of(1, 4), Map.of("weight", "ab"), Map.of());
    assertThatThrownBy(() -> KillTrial.compareBeginnings(longer, other))
        .isInstanceOf(CheckFailedException.class)
        .hasMessageContaining("first 2 steps");
  }
}
