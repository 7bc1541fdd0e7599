// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.bench;

import dev.gantry.cli.internal.bench.result.Absence;
import dev.gantry.cli.internal.demo.CheckFailedException;
import dev.gantry.core.DeviceUnavailableException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/// Lets contenders run in turns, so that what else the machine does meets all of them alike. Each turn
/// begins with another contender.
final class Turns {
  /// Makes the conditions the same before each run, off the clock.
  @FunctionalInterface
  interface Preparation {
    void run() throws Exception;
  }

  /// @param seconds of each contender's runs that count, in order; empty where it failed
  /// @param failures of contenders, which ran no more
  record Outcome(List<List<Double>> seconds, List<Absence> failures) {}

  private final int repeats;
  private final boolean whole;
  private final LongSupplier clock;

  /// @param repeats of each contender, if there is time
  /// @param whole whether each contender runs once even past the deadline; otherwise those whose turn has
  ///     not come by then have no seconds
  /// @param clock in nanoseconds
  Turns(int repeats, boolean whole, LongSupplier clock) {
    this.repeats = repeats;
    this.whole = whole;
    this.clock = clock;
  }

  /// @param warmUp whether a turn comes first, if there is time, that compiles code and does not count
  /// @param deadline by the clock: a turn that would end after it is not begun, except for the first one
  ///     that counts, and the warm-up ends with it
  Outcome run(List<Contender> contenders, Preparation before, boolean warmUp, long deadline)
      throws Exception {
    List<List<Double>> seconds = new ArrayList<>();
    List<Absence> failures = new ArrayList<>();
    contenders.forEach(_ -> seconds.add(new ArrayList<>()));
    boolean[] failed = new boolean[contenders.size()];
    long longest = 0;
    for (int turn = warmUp && clock.getAsLong() < deadline ? 0 : 1; turn <= repeats; turn++) {
      long begin = clock.getAsLong();
      if (turn > 1 && begin + longest > deadline) {
        break;
      }
      for (int i = 0; i < contenders.size(); i++) {
        int next = (i + turn) % contenders.size();
        boolean late = clock.getAsLong() >= deadline;
        if (failed[next] || (late && (turn == 0 || !whole))) {
          continue;
        }
        Contender contender = contenders.get(next);
        try {
          before.run();
          double took = contender.run();
          if (turn > 0) {
            seconds.get(next).add(took);
          }
        } catch (CheckFailedException | InterruptedException e) {
          throw e;
        } catch (Exception | OutOfMemoryError | LinkageError e) {
          failed[next] = true;
          seconds.get(next).clear();
          failures.add(new Absence(contender.name(), reason(e)));
        }
      }
      longest = turn == 0 ? 0 : Math.max(longest, clock.getAsLong() - begin);
    }
    return new Outcome(seconds, failures);
  }

  /// One line.
  static String reason(Throwable e) {
    String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
    return e instanceof DeviceUnavailableException
        ? message
        : e.getClass().getSimpleName() + ": " + message;
  }
}
