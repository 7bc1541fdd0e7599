// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.training.listener.TrainingListener;
import ai.djl.translate.TranslateException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/// A small training that saves checkpoints and goes on from the latest: what a
/// [KillTrial] kills.
public sealed interface SampleTraining permits PointTraining, ImageTraining {
  int stepsPerEpoch();

  /// Steps from one checkpoint to the next.
  int stepsPerSave();

  /// Trains until so many epochs are made, from the latest checkpoint in `checkpoints` if there is
  /// one.
  ///
  /// @param seed of the random numbers, which a checkpoint overrules
  TrainingRun run(Path checkpoints, int epochs, int seed, TrainingListener... listeners)
      throws IOException, TranslateException;

  /// It in words, for another JVM's command line.
  List<String> toArguments();

  /// The reverse of [#toArguments].
  static SampleTraining parse(List<String> arguments) {
    return arguments.isEmpty()
        ? new PointTraining()
        : new ImageTraining(ImageFiles.valueOf(arguments.get(0)), Path.of(arguments.get(1)));
  }
}
