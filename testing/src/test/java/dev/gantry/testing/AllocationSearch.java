// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Lets threads of a kind fail at their first heap allocation, then at their second, and so on, in
/// a JVM that has the agent of [HeapFaults]. Each operation must end, with success or with that
/// error, and the next operation must succeed. The search prints the allocations after which
/// resources were left.
public final class AllocationSearch {
  private static final Duration LONGEST = Duration.ofSeconds(60);
  private static final Duration SETTLING = Duration.ofSeconds(2);
  private static final Duration LOOK = Duration.ofMillis(5);
  private static final int PLACE_FRAMES = 6;

  /// The operation that the process repeats, with and without a fault.
  @FunctionalInterface
  public interface Operation {
    void run() throws Exception;
  }

  /// The resources that the process holds.
  ///
  /// @param others the figures of a library
  private record Holdings(LiveResources.Snapshot memory, List<Long> others, int descriptors) {
    boolean isMoreThan(Holdings before) {
      return !memory.equals(before.memory)
          || !others.equals(before.others)
          || descriptors > before.descriptors;
    }
  }

  private final GantrySession session;
  private final Supplier<List<Long>> figures;
  private final int most;

  /// @param session the session whose idle memory is freed before resources are counted
  /// @param figures further figures that each operation must leave unchanged
  /// @param most the largest number of allocations to test for each kind
  public AllocationSearch(GantrySession session, Supplier<List<Long>> figures, int most) {
    this.session = session;
    this.figures = figures;
    this.most = most;
  }

  /// Searches all kinds, and ends the JVM. The exit code is 1 if an operation does not end, fails
  /// with another error, or makes the next operation fail.
  ///
  /// @param operations the operations by kind. A kind is the prefix of the names of the threads
  ///     that find no heap, and, behind a blank, a description of the operation; `caller` is the
  ///     thread that begins the operation
  public void run(Map<String, Operation> operations) {
    try {
      for (Map.Entry<String, Operation> each : operations.entrySet()) {
        everywhere(each.getKey(), each.getValue());
      }
    } catch (Exception | AssertionError e) {
      e.printStackTrace(System.out);
      // Threads that hang would keep the JVM from ending.
      System.exit(1);
    }
    System.exit(0);
  }

  private Holdings now() throws IOException {
    session.freeIdle();
    return new Holdings(
        LiveResources.snapshot(), figures.get(), OwnProcess.programsDescriptors().size());
  }

  private void everywhere(String kind, Operation operation) throws Exception {
    String threads = kind.split(" ", -1)[0];
    operation.run();
    HeapFaults.begin(threads, 0);
    Throwable first = attempt(operation);
    if (first != null) {
      throw new AssertionError(kind + " fails without a fault", first);
    }
    int all = HeapFaults.end();
    int points = 0;
    int failed = 0;
    int left = 0;
    for (int point = 1; point <= all; point += Math.max(1, all / most)) {
      Holdings before = now();
      HeapFaults.begin(threads, point);
      Throwable failure = attempt(operation);
      int _ = HeapFaults.end();
      OutOfMemoryError thrown = HeapFaults.thrown();
      if (thrown == null) {
        continue;
      }
      points++;
      if (failure != null && !isBy(failure, thrown)) {
        throw new AssertionError(kind + " at " + point + " fails otherwise", failure);
      }
      failed += failure == null ? 0 : 1;
      Throwable next = attempt(operation);
      if (next != null) {
        throw new AssertionError(kind + " at " + point + ": the next fails: " + next, thrown);
      }
      if (stays(before)) {
        left++;
        System.out.printf("%s: left by %d, %s%n", kind, point, place(thrown));
      }
    }
    System.out.printf(
        "%s: %d allocations, %d without heap, %d operations failed by that, %d left something%n",
        kind, all, points, failed, left);
  }

  /// Returns whether the process holds more than before, even after some time: the tests' server
  /// closes its ends of connections only after it has seen that the clients have closed theirs.
  private boolean stays(Holdings before) throws Exception {
    long begin = System.nanoTime();
    boolean more = now().isMoreThan(before);
    while (more && System.nanoTime() - begin < SETTLING.toNanos()) {
      Thread.sleep(LOOK);
      more = now().isMoreThan(before);
    }
    return more;
  }

  /// Returns the innermost frames of Gantry.
  private static String place(OutOfMemoryError thrown) {
    return Stream.of(thrown.getStackTrace())
        .filter(frame -> frame.getClassName().startsWith("dev.gantry."))
        .skip(1)
        .limit(PLACE_FRAMES)
        .map(frame -> frame.getFileName() + ":" + frame.getLineNumber())
        .collect(Collectors.joining(" < "));
  }

  /// @return the error with which the operation failed; null for a success
  private static @Nullable Throwable attempt(Operation operation) throws Exception {
    FutureTask<@Nullable Throwable> task =
        new FutureTask<>(() -> {
          try {
            operation.run();
            return null;
          } catch (Exception | Error e) {
            return e;
          }
        });
    Thread thread = Thread.ofPlatform().daemon().name("caller").start(task);
    try {
      return task.get(LONGEST.toSeconds(), TimeUnit.SECONDS);
    } catch (TimeoutException _) {
      AssertionError stuck = new AssertionError("does not end", HeapFaults.thrown());
      stuck.setStackTrace(thread.getStackTrace());
      throw stuck;
    }
  }

  private static boolean isBy(Throwable failure, OutOfMemoryError thrown) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause.equals(thrown)) {
        return true;
      }
    }
    return false;
  }
}
