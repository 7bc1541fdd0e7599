// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// A [DemoTraining] in a JVM of its own, which trains until it is killed. It prints the number of each step.
final class TrainingChild implements AutoCloseable {
  /// None of it is reached; but nothing runs for ever.
  private static final int MAX_EPOCHS = 100_000;

  /// 128 and the number of the signal.
  private static final int KILLED = 128 + 9;

  private final Process process;
  private final BufferedReader steps;
  private final Path complaints;

  private TrainingChild(Process process, Path complaints) {
    this.process = process;
    this.steps = process.inputReader();
    this.complaints = complaints;
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
            Boolean.toString(training.records()),
            training.images().toString()));
    Path complaints = checkpoints.resolveSibling(checkpoints.getFileName() + ".err");
    return new TrainingChild(
        new ProcessBuilder(command).redirectError(complaints.toFile()).start(), complaints);
  }

  /// Waits for the child's next step.
  ///
  /// @throws CheckFailedException if it has ended
  long step() throws IOException {
    String line = steps.readLine();
    if (line == null) {
      throw new CheckFailedException(
          "the training ended by itself, with code "
              + exitCode()
              + ": "
              + Files.readAllLines(complaints).stream()
                  // What the engine logs comes before it.
                  .filter(complaint -> complaint.contains("Exception"))
                  .findFirst()
                  .orElse("it does not say why"));
    }
    return Long.parseLong(line);
  }

  /// Kills the child with SIGKILL.
  ///
  /// @throws CheckFailedException if it has ended otherwise
  void kill() {
    process.destroyForcibly();
    if (exitCode() != KILLED) {
      throw new CheckFailedException("the training was not killed, its code is " + exitCode());
    }
  }

  private int exitCode() {
    return process.onExit().join().exitValue();
  }

  /// Kills the child if it lives.
  @Override
  public void close() {
    process.destroyForcibly();
    var _ = exitCode();
  }

  static void main(String[] arguments) throws IOException, TranslateException {
    var _ =
        ProcessHandle.current()
            .parent()
            .orElseThrow()
            .onExit()
            .thenRun(() -> Runtime.getRuntime().halt(1));
    DemoTraining training =
        new DemoTraining(Boolean.parseBoolean(arguments[1]), Path.of(arguments[2]));
    var _ = training.run(Path.of(arguments[0]), MAX_EPOCHS, DemoTraining.SEED, new Reporter());
  }

  private static final class Reporter extends TrainingListenerAdapter {
    private long step;

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batch) {
      System.out.println(++step);
    }
  }
}
