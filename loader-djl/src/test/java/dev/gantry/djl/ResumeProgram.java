// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.Training;
import java.nio.file.Path;

/// Continues from the latest checkpoint of a folder. For a JVM of its own.
final class ResumeProgram {
  private ResumeProgram() {}

  public static void main(String[] arguments) {
    try (Training training = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(Path.of(arguments[0])).build()) {
      RestoredTraining restored =
          saver.restoreLatest(training.model, training.trainer).orElseThrow();
      System.out.println(
          "step "
              + restored.step()
              + ", losses "
              + training.steps((int) restored.step(), SaverResumeTest.END));
    }
  }
}
