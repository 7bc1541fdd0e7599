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

/// Lets threads of a kind find no heap at their first allocation, their second, and so on, in a JVM that has the agent
/// of [HeapFaults]. Each operation must end, right or by that error, and the next must be right; points that left
/// something behind are printed.
public final class AllocationSearch {
  private static final Duration LONGEST = Duration.ofSeconds(60);
  private static final Duration SETTLING = Duration.ofSeconds(2);
  private static final Duration LOOK = Duration.ofMillis(5);
  private static final int PLACE_FRAMES = 6;

  /// The process does this, and does it again after a fault.
  @FunctionalInterface
  public interface Operation {
    void run() throws Exception;
  }

  /// All that the process holds.
  ///
  /// @param others figures of a library
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

  /// @param session whose idle memory is freed before what is held is counted
  /// @param figures what else must be as before after each operation
  /// @param most points of a kind
  public AllocationSearch(GantrySession session, Supplier<List<Long>> figures, int most) {
    this.session = session;
    this.figures = figures;
    this.most = most;
  }

  /// Searches all kinds, and ends the JVM: with 1 at an operation that does not end, that fails otherwise, or after
  /// which the next is wrong.
  ///
  /// @param operations by the prefix of the threads' names that find no heap, and after a blank what they do;
  ///     `caller` is the thread that begins the operation
  public void run(Map<String, Operation> operations) {
    try {
      for (Map.Entry<String, Operation> each : operations.entrySet()) {
        everywhere(each.getKey(), each.getValue());
      }
    } catch (Exception | AssertionError e) {
      e.printStackTrace(System.out);
      // Threads that do not end would keep the JVM.
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

  /// Whether more is held than before, also a little later: the server of the tests closes its ends of connections when
  /// it has seen that the others are closed.
  private boolean stays(Holdings before) throws Exception {
    long begin = System.nanoTime();
    boolean more = now().isMoreThan(before);
    while (more && System.nanoTime() - begin < SETTLING.toNanos()) {
      Thread.sleep(LOOK);
      more = now().isMoreThan(before);
    }
    return more;
  }

  /// The innermost of Gantry's frames.
  private static String place(OutOfMemoryError thrown) {
    return Stream.of(thrown.getStackTrace())
        .filter(frame -> frame.getClassName().startsWith("dev.gantry."))
        .skip(1)
        .limit(PLACE_FRAMES)
        .map(frame -> frame.getFileName() + ":" + frame.getLineNumber())
        .collect(Collectors.joining(" < "));
  }

  /// @return what the operation failed by; null if it did not
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
