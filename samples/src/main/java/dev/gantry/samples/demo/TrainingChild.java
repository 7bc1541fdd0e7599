// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// A [DemoTraining] in a JVM of its own, which trains until it is killed. With each step it tells on
/// standard output which one that is, and which one the latest checkpoint is of.
final class TrainingChild implements AutoCloseable {
  static final int SEED = 1;

  /// None of it is reached; but nothing runs for ever.
  private static final int MAX_EPOCHS = 100_000;

  /// 128 and the number of the signal.
  private static final int KILLED = 128 + 9;

  private final Process process;
  private final BufferedReader reports;
  private final Path complaints;

  private TrainingChild(Process process, Path complaints) {
    this.process = process;
    this.reports = process.inputReader();
    this.complaints = complaints;
  }

  /// What the child tells.
  ///
  /// @param step that it is in
  /// @param saved the step of the latest checkpoint, or 0
  record Report(long step, long saved) {
    static Report parse(String line) {
      String[] numbers = line.split(" ", 2);
      return new Report(Long.parseLong(numbers[0]), Long.parseLong(numbers[1]));
    }
  }

  /// Starts a JVM with this one's class path and options. Its complaints go into a file beside the
  /// checkpoints.
  static TrainingChild start(DemoTraining training, Path checkpoints) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        // A debugger's port, for one, is taken.
        .filter(option -> !option.startsWith("-agentlib") && !option.startsWith("-javaagent"))
        .forEach(command::add);
    command.addAll(
        List.of(
            "-cp",
            System.getProperty("java.class.path"),
            TrainingChild.class.getName(),
            checkpoints.toString(),
            training.samples().name(),
            training.images().toString()));
    Path complaints = checkpoints.resolveSibling(checkpoints.getFileName() + ".err");
    return new TrainingChild(
        new ProcessBuilder(command).redirectError(complaints.toFile()).start(), complaints);
  }

  /// Waits for what the child tells next.
  ///
  /// @throws CheckFailedException if it has ended
  Report report() throws IOException {
    String line = reports.readLine();
    if (line == null) {
      int exitCode = exitCode();
      throw new CheckFailedException(
          "the training ended by itself, with code "
              + exitCode
              + ": "
              + Files.readAllLines(complaints).stream()
                  // What the engine logs comes before it.
                  .filter(complaint -> complaint.contains("Exception"))
                  .findFirst()
                  .orElse("it does not say why"));
    }
    return Report.parse(line);
  }

  /// Kills the child with SIGKILL.
  ///
  /// @param last what it had told before
  /// @return the last that it told at all
  /// @throws CheckFailedException if it has ended otherwise
  Report kill(Report last) throws IOException {
    // Its handle, since the process itself would close the pipe, too: what was told is still there,
    // of the last line perhaps a part.
    var _ = process.toHandle().destroyForcibly();
    List<String> rest = reports.readAllLines();
    if (exitCode() != KILLED) {
      throw new CheckFailedException("the training was not killed, its code is " + exitCode());
    }
    return rest.size() < 2 ? last : Report.parse(rest.get(rest.size() - 2));
  }

  private int exitCode() {
    try {
      return process.waitFor();
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw new CheckFailedException("interrupted while waiting for the training");
    }
  }

  /// Kills the child if it lives.
  @Override
  public void close() {
    process.destroyForcibly();
    var _ = exitCode();
  }

  static void main(String[] arguments) throws IOException, TranslateException {
    Thread.ofPlatform().daemon().start(TrainingChild::endWithParent);
    Path checkpoints = Path.of(arguments[0]);
    DemoTraining training =
        new DemoTraining(DemoTraining.Samples.valueOf(arguments[1]), Path.of(arguments[2]));
    var _ = training.run(checkpoints, MAX_EPOCHS, SEED, new Reporter(checkpoints));
  }

  /// The parent holds the other end of standard input as long as it lives.
  private static void endWithParent() {
    try {
      var _ = System.in.read();
    } catch (IOException _) {
      // The parent has ended, too.
    }
    Runtime.getRuntime().halt(1);
  }

  /// The step of the latest checkpoint: of the folders `gantry-step-N` that have a manifest.
  static long latest(Path checkpoints) {
    try (Stream<Path> folders = Files.list(checkpoints)) {
      return folders
          .filter(folder -> Files.exists(folder.resolve(KillTrial.MANIFEST)))
          .map(folder -> folder.getFileName().toString())
          .mapToLong(name -> Long.parseLong(name.substring(name.lastIndexOf('-') + 1)))
          .max()
          .orElse(0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static final class Reporter extends TrainingListenerAdapter {
    private final Path checkpoints;
    private long step;

    Reporter(Path checkpoints) {
      this.checkpoints = checkpoints;
    }

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batch) {
      System.out.println(++step + " " + latest(checkpoints));
    }
  }
}
