// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.SaveRequest;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SavedStateTest {
  @Test
  void whatWasNotSavedIsAbsent(@TempDir Path folder) {
    try (Training training = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      assertThat(
              saver.save(SaveRequest.builder().setStep(1).setModel(training.model).build()).join())
          .isInstanceOf(SaveOutcome.Saved.class);
      var state = new SavedState((CheckpointFolder) saver.latest().orElseThrow());
      assertThat(state.seed()).isEmpty();
      assertThat(state.generator("cpu")).isEmpty();
      assertThat(state.dataset()).isEmpty();
      assertThat(state.hasTraining()).isFalse();
      assertThat(state.devices()).isEqualTo(1);
    }
  }
}
