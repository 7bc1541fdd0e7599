// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.schedules;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Runs a scenario once in each schedule that has at most some preemptions.
///
/// The scenario's threads are virtual threads. The explorer lets one of them run at a time, from
/// one point to the next, so a list of numbers describes a schedule and repeats it. A switch away
/// from a thread that could continue is a preemption; most errors need one or two (M. Musuvathi,
/// S. Qadeer, Iterative context bounding, 2007). The explorer does not find orders that only a
/// processor's reordering makes. It needs `--add-opens java.base/java.lang=ALL-UNNAMED`, because
/// the JDK has no public API to schedule virtual threads.
final class Explorer {
  /// The limit of a schedule, which is far longer than the scenarios need.
  private static final int MAX_STEPS = 20_000;

  private final Constructor<?> scenario;
  private final int preemptions;

  /// A choice among several threads in a schedule.
  ///
  /// @param mayGoOn whether choice 0 is the thread that ran before
  /// @param spent the number of preemptions before this choice
  private record Choice(int chosen, int count, boolean mayGoOn, int spent) {}

  /// The result of a search.
  ///
  /// @param schedules the number of schedules that were run
  /// @param failure describes the failure of the last schedule; empty if it succeeded
  record Result(long schedules, String failure) {}

  private static final class Controlled {
    final Thread thread;
    volatile @Nullable Runnable ready;
    @Nullable Throwable failure;

    Controlled(Scenario.Work work, int number) {
      thread =
          virtual(
              task -> ready = task,
              "thread " + number,
              () -> {
                try {
                  work.run();
                } catch (Throwable e) {
                  failure = e;
                }
              });
      thread.start();
    }
  }

  private Explorer(Constructor<?> scenario, int preemptions) {
    this.scenario = scenario;
    this.preemptions = preemptions;
  }

  /// @param scenario the class of the scenario; threads may be switched at points in the classes
  ///     of its package
  /// @param most the largest number of schedules to run
  static Result explore(Class<?> scenario, int preemptions, long most) {
    try {
      Constructor<?> made =
          new Interleaved(scenario.getPackageName())
              .loadClass(scenario.getName())
              .getDeclaredConstructor();
      made.setAccessible(true);
      return new Explorer(made, preemptions).exploreAll(most);
    } catch (ReflectiveOperationException e) {
      throw new IllegalArgumentException(scenario.getName(), e);
    }
  }

  private Result exploreAll(long most) throws ReflectiveOperationException {
    List<Integer> schedule = new ArrayList<>();
    for (long count = 1; ; count++) {
      List<Choice> choices = new ArrayList<>();
      String failure = run(schedule, choices);
      if (!failure.isEmpty()) {
        return new Result(
            count, failure + ", schedule " + choices.stream().map(Choice::chosen).toList());
      }
      int last = choices.size() - 1;
      while (last >= 0 && !hasNext(choices.get(last))) {
        last--;
      }
      if (last < 0 || count == most) {
        return new Result(count, "");
      }
      schedule = new ArrayList<>(choices.subList(0, last).stream().map(Choice::chosen).toList());
      schedule.add(choices.get(last).chosen() + 1);
    }
  }

  private boolean hasNext(Choice choice) {
    return choice.chosen() + 1 < choice.count()
        && (!choice.mayGoOn() || choice.spent() < preemptions);
  }

  /// @param schedule the first choices; later choices take the first thread
  /// @param choices receives all choices of the run
  /// @return a description of the failure; empty for a success
  private String run(List<Integer> schedule, List<Choice> choices)
      throws ReflectiveOperationException {
    Points.reset();
    Scenario made = (Scenario) scenario.newInstance();
    List<Controlled> threads = new ArrayList<>();
    for (Scenario.Work work : made.threads()) {
      threads.add(new Controlled(work, threads.size()));
    }
    int spent = 0;
    int current = -1;
    for (int step = 0; step < MAX_STEPS; step++) {
      int before = current;
      List<Integer> enabled =
          IntStream.range(0, threads.size())
              .filter(i -> threads.get(i).ready != null)
              .boxed()
              .sorted((a, b) -> Integer.compare(a == before ? -1 : a, b == before ? -1 : b))
              .toList();
      if (enabled.isEmpty()) {
        return end(made, threads);
      }
      int chosen = 0;
      if (enabled.size() > 1) {
        boolean mayGoOn = enabled.getFirst() == before;
        chosen = choices.size() < schedule.size() ? schedule.get(choices.size()) : 0;
        choices.add(new Choice(chosen, enabled.size(), mayGoOn, spent));
        spent += mayGoOn && chosen > 0 ? 1 : 0;
      }
      current = enabled.get(chosen);
      Controlled next = threads.get(current);
      Runnable task = next.ready;
      next.ready = null;
      if (task != null) {
        task.run();
      }
      while (made.waitsForOthers() && next.ready == null && next.thread.isAlive()) {
        Thread.onSpinWait();
      }
      if (next.failure != null) {
        return next.thread.getName() + " failed: " + words(next.failure);
      }
    }
    return "no end after " + MAX_STEPS + " steps";
  }

  private static String end(Scenario made, List<Controlled> threads) {
    StringBuilder stuck = new StringBuilder();
    for (Controlled each : threads) {
      if (each.thread.isAlive()) {
        stuck.append(each.thread.getName()).append(" waits for ever at ");
        stuck.append(List.of(each.thread.getStackTrace())).append("; ");
      }
    }
    if (!stuck.isEmpty()) {
      return stuck.toString();
    }
    try {
      made.check();
      return "";
    } catch (Exception | AssertionError e) {
      return "wrong at the end: " + words(e);
    }
  }

  private static String words(Throwable failure) {
    return failure + " at " + List.of(failure.getStackTrace()).stream().limit(6).toList();
  }

  /// Makes a virtual thread whose continuations run on `scheduler`.
  private static Thread virtual(Executor scheduler, String name, Runnable work) {
    try {
      Method factory =
          Class.forName("java.lang.ThreadBuilders")
              .getDeclaredMethod(
                  "newVirtualThread", Executor.class, String.class, int.class, Runnable.class);
      factory.setAccessible(true);
      return (Thread) factory.invoke(null, scheduler, name, 0, work);
    } catch (InvocationTargetException e) {
      throw new IllegalStateException(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
}
