// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.translate.TranslateException;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.StoreFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// A training that was killed, gone on with, and compared with one that was not.
///
/// @param killed the last that the training told before it was killed
/// @param restored the step of the checkpoint from which this process went on
/// @param leftovers files of a save that never ended, which are gone now
/// @param uninterrupted the same training from beginning to end
public record KillTrial(
    TrainingChild.Report killed, long restored, int leftovers, TrainingRun uninterrupted) {
  /// That many checkpoints are saved before the kill: more than are kept.
  private static final int SAVES_BEFORE = 5;

  /// How long to wait for a moment in which another save is under way.
  private static final int SAVES_OF_PATIENCE = 10;

  /// At least so many come after the step of the kill: enough for a network that begins badly to
  /// learn its images.
  private static final int STEPS_AFTER = 200;

  /// Another than the child's: what comes after must come from the checkpoint.
  private static final int OTHER_SEED = 2;

  /// @param folder where to make two folders of checkpoints
  /// @throws CheckFailedException if the two trainings differ
  public static KillTrial run(SampleTraining training, Path folder)
      throws IOException, TranslateException {
    Path checkpoints = folder.resolve("killed");
    TrainingChild.Report killed = trainAndKill(training, checkpoints);
    long restored = CheckpointStore.list(checkpoints).latest().orElseThrow().step();
    int leftovers = leftovers(checkpoints).size();

    int epochs =
        Math.toIntExact(Math.ceilDiv(killed.step() + STEPS_AFTER, training.stepsPerEpoch()));
    TrainingRun resumed = training.run(checkpoints, epochs, OTHER_SEED);
    if (!leftovers(checkpoints).isEmpty()) {
      throw new CheckFailedException("left by the killed save: " + leftovers(checkpoints));
    }
    TrainingRun uninterrupted =
        training.run(folder.resolve("uninterrupted"), epochs, TrainingChild.SEED);
    compare(uninterrupted, resumed, restored);
    return new KillTrial(killed, restored, leftovers, uninterrupted);
  }

  /// How many steps were made after the checkpoint.
  public int stepsResumed() {
    return uninterrupted.losses().size() - Math.toIntExact(restored);
  }

  private static TrainingChild.Report trainAndKill(SampleTraining training, Path checkpoints)
      throws IOException {
    int interval = training.stepsPerSave();
    try (TrainingChild child = TrainingChild.start(training, checkpoints)) {
      TrainingChild.Report report = child.report();
      while (report.saved() < (long) SAVES_BEFORE * interval) {
        report = child.report();
      }
      // On a fast disk a save may end before the next step is told of.
      long patience = report.step() + (long) SAVES_OF_PATIENCE * interval;
      while (!isSaveUnderWay(report, interval) && report.step() < patience) {
        report = child.report();
      }
      return child.kill(report);
    }
  }

  /// Whether the checkpoint that was due last is not there yet.
  private static boolean isSaveUnderWay(TrainingChild.Report report, int interval) {
    long due = (report.step() - 1) / interval;
    return report.saved() < due * interval;
  }

  /// What lies in the folders of checkpoints that have no manifest, and so do not exist.
  private static List<Path> leftovers(Path checkpoints) throws IOException {
    try (Stream<Path> files = Files.walk(checkpoints)) {
      return files
          .filter(Files::isRegularFile)
          .filter(file -> !checkpoints.equals(file.getParent()))
          .filter(file -> Files.notExists(file.resolveSibling(StoreFolder.MANIFEST)))
          .toList();
    }
  }

  /// How closely this machine's trainings agree.
  public Agreement agreement() {
    return Agreement.on(uninterrupted.device());
  }

  /// @throws CheckFailedException if they differ by more than trainings on their device do
  static void compare(TrainingRun uninterrupted, TrainingRun resumed, long restored) {
    Agreement agreement = Agreement.on(uninterrupted.device());
    List<Float> losses = uninterrupted.losses();
    List<Float> expected = losses.subList(Math.toIntExact(restored), losses.size());
    if (!agreement.holds(expected, resumed.losses())) {
      throw new CheckFailedException(
          "after step "
              + restored
              + " the resumed training's losses are not those of the uninterrupted one");
    }
    Map<String, List<Float>> parameters = uninterrupted.parameters();
    boolean same = parameters.keySet().equals(resumed.parameters().keySet());
    for (Map.Entry<String, List<Float>> one : resumed.parameters().entrySet()) {
      same =
          same && agreement.holds(parameters.getOrDefault(one.getKey(), List.of()), one.getValue());
    }
    if (!same) {
      throw new CheckFailedException(
          "the resumed training's parameters are not those of the uninterrupted one");
    }
  }

  /// Compares trainings of which one may be longer.
  ///
  /// @return of how many steps the losses were compared
  /// @throws CheckFailedException if they differ by more than trainings on their device do
  public static int compareBeginnings(TrainingRun one, TrainingRun other) {
    int steps = Math.min(one.losses().size(), other.losses().size());
    if (!Agreement.on(one.device())
        .holds(one.losses().subList(0, steps), other.losses().subList(0, steps))) {
      throw new CheckFailedException(
          "the losses of the first " + steps + " steps are not the same from both kinds of files");
    }
    return steps;
  }
}
