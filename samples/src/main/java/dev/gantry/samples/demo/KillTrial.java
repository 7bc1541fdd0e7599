// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.Device;
import ai.djl.translate.TranslateException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// A training that was killed and resumed, and compared with one that was not killed.
///
/// @param killed the step in which the training was killed
/// @param restored the step of the checkpoint from which this process resumed
/// @param leftovers files of a save that never ended, which are gone now
/// @param uninterrupted the same training from beginning to end
record KillTrial(long killed, long restored, int leftovers, DemoTraining.Run uninterrupted) {
  static final String MANIFEST = "manifest.json";

  /// The checkpoints that are saved before the kill: more than are kept.
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
  static KillTrial run(DemoTraining training, Path folder) throws IOException, TranslateException {
    Path checkpoints = folder.resolve("killed");
    long killed = trainAndKill(training, checkpoints);
    long restored = TrainingChild.latest(checkpoints);
    int leftovers = leftovers(checkpoints).size();

    int epochs =
        Math.toIntExact(Math.ceilDiv(killed + STEPS_AFTER, training.samples().stepsPerEpoch));
    DemoTraining.Run resumed = training.run(checkpoints, epochs, OTHER_SEED);
    if (!leftovers(checkpoints).isEmpty()) {
      throw new CheckFailedException("left by the killed save: " + leftovers(checkpoints));
    }
    DemoTraining.Run uninterrupted =
        training.run(folder.resolve("uninterrupted"), epochs, TrainingChild.SEED);
    compare(uninterrupted, resumed, restored);
    return new KillTrial(killed, restored, leftovers, uninterrupted);
  }

  private static long trainAndKill(DemoTraining training, Path checkpoints) throws IOException {
    int interval = training.samples().stepsPerSave;
    try (TrainingChild child = TrainingChild.start(training, checkpoints)) {
      TrainingChild.Report report = child.report();
      while (report.saved() < (long) SAVES_BEFORE * interval) {
        report = child.report();
      }
      // On a fast disk a save may end before the next step is told of. A save is under way while
      // the
      // checkpoint that was due last is not there yet.
      long patience = report.step() + (long) SAVES_OF_PATIENCE * interval;
      while (report.saved() >= (report.step() - 1) / interval * interval
          && report.step() < patience) {
        report = child.report();
      }
      return child.kill(report).step();
    }
  }

  /// What lies in the folders of checkpoints that have no manifest, and so do not exist.
  private static List<Path> leftovers(Path checkpoints) throws IOException {
    try (Stream<Path> files = Files.walk(checkpoints)) {
      return files
          .filter(Files::isRegularFile)
          .filter(file -> !checkpoints.equals(file.getParent()))
          .filter(file -> Files.notExists(file.resolveSibling(MANIFEST)))
          .toList();
    }
  }

  /// How many steps were made after the checkpoint.
  int stepsResumed() {
    return uninterrupted.losses().size() - Math.toIntExact(restored);
  }

  /// How closely two trainings of one seed agree on a device. On a GPU they differ by themselves: cuDNN
  /// adds up in an order that changes from run to run, which moved the loss of one step by 2e-7
  /// (measured on an H200), and each step begins with what the one before left.
  static String agreement(Device device) {
    return device.isGpu() ? "to within 0.02" : "bit for bit";
  }

  private static boolean agree(List<Float> some, List<Float> others, Device device) {
    float most = device.isGpu() ? 0.02f : 0;
    boolean agree = some.size() == others.size();
    for (int i = 0; agree && i < some.size(); i++) {
      agree =
          some.get(i).equals(others.get(i))
              || (most > 0 && Math.abs(some.get(i) - others.get(i)) <= most);
    }
    return agree;
  }

  /// @throws CheckFailedException if they differ by more than trainings on their device do
  static void compare(DemoTraining.Run uninterrupted, DemoTraining.Run resumed, long restored) {
    Device device = uninterrupted.device();
    List<Float> losses = uninterrupted.losses();
    List<Float> expected = losses.subList(Math.toIntExact(restored), losses.size());
    if (!agree(expected, resumed.losses(), device)) {
      throw new CheckFailedException(
          "after step "
              + restored
              + " the resumed training's losses are not those of the uninterrupted one");
    }
    Map<String, List<Float>> parameters = uninterrupted.parameters();
    if (!parameters.keySet().equals(resumed.parameters().keySet())
        || !resumed.parameters().entrySet().stream()
            .allMatch(one ->
                agree(parameters.getOrDefault(one.getKey(), List.of()), one.getValue(), device))) {
      throw new CheckFailedException(
          "the resumed training's parameters are not those of the uninterrupted one");
    }
  }

  /// Compares trainings of which one may be longer.
  ///
  /// @return of how many steps the losses were compared
  /// @throws CheckFailedException if they differ by more than trainings on their device do
  static int compareBeginnings(DemoTraining.Run one, DemoTraining.Run other) {
    int steps = Math.min(one.losses().size(), other.losses().size());
    if (!agree(one.losses().subList(0, steps), other.losses().subList(0, steps), one.device())) {
      throw new CheckFailedException(
          "the losses of the first " + steps + " steps are not the same from both kinds of files");
    }
    return steps;
  }
}
