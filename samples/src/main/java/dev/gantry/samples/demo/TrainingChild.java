// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.translate.TranslateException;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// A [DemoTraining] in a JVM of its own, which trains until it is killed. It prints the number of each step.
final class TrainingChild implements AutoCloseable {
  /// A limit, so that a child that is never killed does end.
  private static final int MAX_EPOCHS = 100_000;

  /// The exit code of a killed process: 128 plus the number of the signal.
  private static final int KILLED = 128 + 9;

  private static final String STEP = "step ";

  private final Process process;
  private final BufferedReader out;

  private TrainingChild(Process process) {
    this.process = process;
    this.out = process.inputReader();
  }

  /// Starts a JVM with this one's class path and options.
  static TrainingChild start(DemoTraining training, Path checkpoints) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        // A debugger's port is already in use by this JVM.
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
    return new TrainingChild(new ProcessBuilder(command).redirectErrorStream(true).start());
  }

  /// Waits for the child's next step.
  ///
  /// @throws CheckFailedException if it has ended
  long step() throws IOException {
    String reason = "it does not say why";
    // The child also prints the engine's log and the stack trace of an exception.
    for (String line = out.readLine(); line != null; line = out.readLine()) {
      if (line.startsWith(STEP)) {
        return Long.parseLong(line.substring(STEP.length()));
      }
      reason = line.startsWith("Exception") ? line : reason;
    }
    throw new CheckFailedException(
        "the training ended by itself, with code " + exitCode() + ": " + reason);
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

  /// Kills the child if it is alive.
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
    var _ =
        training.run(
            Path.of(arguments[0]),
            MAX_EPOCHS,
            DemoTraining.SEED,
            step -> System.out.println(STEP + step));
  }
}
