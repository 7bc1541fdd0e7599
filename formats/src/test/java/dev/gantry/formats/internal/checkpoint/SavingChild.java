// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.Sessions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/// A process that saves until it is killed, and prints its progress on its standard output.
final class SavingChild implements AutoCloseable {
  /// The process may be killed at any time from now on.
  static final String READY = "ready";

  /// The process waits for its end before the requested step of the protocol.
  static final String AT = "at ";

  /// The save was reported as done.
  static final String SAVED = "saved ";

  /// The process could not lock the folder.
  static final String REFUSED = "refused: ";

  private final Process process;
  private final BufferedReader lines;

  private SavingChild(Process process) {
    this.process = process;
    this.lines = process.inputReader();
  }

  /// Starts a process that saves one checkpoint, and stops just before a step of the file
  /// protocol.
  ///
  /// @param point the number of the step, from 1
  static SavingChild stopping(Path root, long step, int kept, int point) {
    return start(StopsAtAPoint.class, root, step, kept, point);
  }

  /// Starts a process that saves one training step after the other.
  static SavingChild looping(Path root, long step, int kept) {
    return start(SavesForEver.class, root, step, kept);
  }

  /// Starts a process that opens the folder and then only waits.
  static SavingChild holding(Path root) {
    return start(HoldsTheFolder.class, root);
  }

  private static SavingChild start(Class<?> main, Object... arguments) {
    ProcessBuilder command = ChildJvm.command(List.of("-Xmx128m"), main, arguments);
    try {
      return new SavingChild(command.redirectError(Redirect.INHERIT).start());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Waits for the next line that the process prints.
  String line() {
    try {
      String line = lines.readLine();
      return line == null ? "no more" : line;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Ends the process with SIGKILL.
  ///
  /// @return the lines that the process had printed and that were not read yet
  List<String> kill() {
    // The handle kills the process, because `Process` would discard the output that was not read.
    process.toHandle().destroyForcibly();
    List<String> rest = lines.lines().toList();
    close();
    return rest;
  }

  @Override
  public void close() {
    process.destroyForcibly();
    boolean interrupted = false;
    while (process.isAlive()) {
      try {
        process.waitFor();
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  private static void stop() {
    while (true) {
      LockSupport.park();
    }
  }

  /// The program's arguments are the folder, the step, how many checkpoints to keep, and the
  /// point.
  static final class StopsAtAPoint {
    private StopsAtAPoint() {}

    public static void main(String[] arguments) {
      Name name = new Name(Long.parseLong(arguments[1]), 0);
      Retention retention = TestCheckpoints.last(Integer.parseInt(arguments[2]));
      ProtocolSteps steps =
          new ProtocolSteps(
              Libc.INSTANCE,
              Integer.parseInt(arguments[3]),
              step -> {
                say(AT + step);
                stop();
              });
      try (GantrySession session = Sessions.over(steps);
          CheckpointStore store = TestCheckpoints.open(session, Path.of(arguments[0]), retention)) {
        steps.begin();
        store.save(name.unsaved(), TestCheckpoints.options());
        say(SAVED + name.step());
        stop();
      }
    }
  }

  /// The program's arguments are the folder, the first step, and how many checkpoints to keep. It
  /// saves directly and through a queue in turns.
  static final class SavesForEver {
    private static final int BURST = 8;

    private SavesForEver() {}

    public static void main(String[] arguments) {
      long step = Long.parseLong(arguments[1]);
      Retention retention = TestCheckpoints.last(Integer.parseInt(arguments[2]));
      try (GantrySession session = GantrySession.open();
          CheckpointStore store = TestCheckpoints.open(session, Path.of(arguments[0]), retention)) {
        say(READY);
        while (true) {
          try (SaveQueue queue =
              new SaveQueue(
                  store,
                  SnapshotLimits.DEFAULT,
                  BusyPolicy.QUEUE,
                  TestCheckpoints.options().withThreads(2))) {
            for (int i = 0; i < BURST; i++) {
              var _ = queue.submit(TestCheckpoints.unsaved(step++)).thenAccept(SavesForEver::tell);
            }
          }
          for (int i = 0; i < BURST; i++) {
            tell(store.save(TestCheckpoints.unsaved(step++), TestCheckpoints.options()).outcome());
          }
        }
      }
    }

    private static void tell(SaveOutcome outcome) {
      switch (outcome) {
        case SaveOutcome.Saved saved -> say(SAVED + saved.checkpoint().step());
        case SaveOutcome.Skipped(long step) -> say("skipped " + step);
      }
    }
  }

  /// The program's argument is the folder.
  static final class HoldsTheFolder {
    private HoldsTheFolder() {}

    public static void main(String[] arguments) {
      try (GantrySession session = GantrySession.open();
          CheckpointStore _ = TestCheckpoints.open(session, Path.of(arguments[0]), Retention.ALL)) {
        say(READY);
        stop();
      } catch (MisuseException refused) {
        say(REFUSED + refused.getMessage());
      }
    }
  }
}
