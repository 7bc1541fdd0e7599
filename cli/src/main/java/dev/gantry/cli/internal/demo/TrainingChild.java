// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.translate.TranslateException;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.process.ChildJvm;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// A [SampleTraining] in a JVM of its own, which trains until it is killed. With each step it tells
/// on standard output which one that is, and which one the latest checkpoint is of.
final class TrainingChild implements AutoCloseable {
  static final int SEED = 1;

  /// None of it is reached; but nothing runs for ever.
  private static final int MOST_EPOCHS = 100_000;

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
  public record Report(long step, long saved) {
    @Override
    public String toString() {
      return step + " " + saved;
    }

    static Report parse(String line) {
      String[] numbers = line.split(" ", 2);
      return new Report(Long.parseLong(numbers[0]), Long.parseLong(numbers[1]));
    }
  }

  /// Starts a JVM with this one's class path and options. What it complains of goes into a file
  /// beside the checkpoints.
  static TrainingChild start(SampleTraining training, Path checkpoints) throws IOException {
    List<String> arguments = new ArrayList<>(List.of(checkpoints.toString()));
    arguments.addAll(training.toArguments());
    List<String> command = ChildJvm.command(TrainingChild.class, arguments);
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
              + Files.readAllLines(complaints).stream().findFirst().orElse("it does not say why"));
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
    ChildJvm.endWithParent();
    Path checkpoints = Path.of(arguments[0]);
    SampleTraining training = SampleTraining.parse(List.of(arguments).subList(1, arguments.length));
    var _ = training.run(checkpoints, MOST_EPOCHS, SEED, new Reporter(checkpoints));
  }

  private static final class Reporter extends TrainingListenerAdapter {
    private final Path checkpoints;
    private long step;

    Reporter(Path checkpoints) {
      this.checkpoints = checkpoints;
    }

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batch) {
      step++;
      long saved =
          CheckpointStore.list(checkpoints).latest().map(CheckpointFolder::step).orElse(0L);
      System.out.println(new Report(step, saved));
    }
  }
}
