// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import dev.gantry.benchmarks.result.Absence;
import dev.gantry.core.DeviceUnavailableException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;

/// Runs contenders in turns, so that other load on the machine affects all of them alike. Each
/// turn begins with another contender.
public final class Turns {
  /// Establishes the same conditions before each run, off the clock.
  @FunctionalInterface
  public interface Preparation {
    void run() throws Exception;
  }

  private final List<Contender> contenders;
  private final int repeats;
  private final long last;
  private final LongSupplier clock;
  private final List<List<Double>> seconds = new ArrayList<>();
  private final List<Absence> failures = new ArrayList<>();
  private final boolean[] failed;

  /// @param repeats how often each contender runs, if there is time
  /// @param last the time of the clock after which no run is begun
  /// @param clock the time in nanoseconds
  public Turns(List<Contender> contenders, int repeats, long last, LongSupplier clock) {
    this.contenders = List.copyOf(contenders);
    this.repeats = repeats;
    this.last = last;
    this.clock = clock;
    // Another thread may read the results so far.
    contenders.forEach(_ -> seconds.add(new CopyOnWriteArrayList<>()));
    failed = new boolean[contenders.size()];
  }

  /// Returns the counted runs of a contender, in order; empty if it failed. Other threads may call
  /// this during the runs.
  public List<Double> seconds(int contender) {
    return List.copyOf(seconds.get(contender));
  }

  /// Returns the contenders that failed; they do not run again.
  public List<Absence> failures() {
    return failures;
  }

  /// Returns how many contenders did not run, because the time was used up.
  public int leftOut() {
    return (int)
        IntStream.range(0, contenders.size())
            .filter(i -> !failed[i] && seconds.get(i).isEmpty())
            .count();
  }

  /// @param warmUp whether an uncounted turn comes first, if there is time, so that the code is
  ///     compiled
  /// @param deadline the time of the clock at which the turns must end: a turn that would end
  ///     later is not begun, except for the first counted turn, and the warm-up ends at this time
  public void run(Preparation before, boolean warmUp, long deadline) throws Exception {
    long longest = 0;
    for (int turn = warmUp && clock.getAsLong() < deadline ? 0 : 1; turn <= repeats; turn++) {
      long begin = clock.getAsLong();
      if (turn > 1 && begin + longest > deadline) {
        break;
      }
      for (int i = 0; i < contenders.size(); i++) {
        int next = (i + turn) % contenders.size();
        if (!failed[next] && clock.getAsLong() < (turn == 0 ? deadline : last)) {
          run(next, before, turn > 0);
        }
      }
      longest = turn == 0 ? 0 : Math.max(longest, clock.getAsLong() - begin);
    }
  }

  private void run(int number, Preparation before, boolean counts) throws Exception {
    Contender contender = contenders.get(number);
    try {
      before.run();
      double took = contender.run();
      if (counts) {
        seconds.get(number).add(took);
      }
    } catch (WrongBytesException | InterruptedException e) {
      throw e;
    } catch (Exception | OutOfMemoryError | LinkageError e) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      failed[number] = true;
      seconds.get(number).clear();
      failures.add(new Absence(contender.name(), reason(e)));
    }
  }

  /// Waits until the driver has cleared the memory that the last run freed. Without this, the next
  /// run would be a tenth slower.
  public static void pause() throws InterruptedException {
    Thread.sleep(Long.getLong("gantry.bench.pause", 500));
  }

  /// One line.
  public static String reason(Throwable e) {
    String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
    return e instanceof DeviceUnavailableException
        ? message
        : e.getClass().getSimpleName() + ": " + message;
  }
}
