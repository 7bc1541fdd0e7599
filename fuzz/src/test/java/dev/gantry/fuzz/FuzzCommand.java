// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// The command `.ci/fuzz`: searches all targets or some of them for a given time, in as many
/// concurrent JVMs as the machine has processors.
public final class FuzzCommand {
  /// If the time for each target is shorter than this, targets share a JVM.
  private static final int LEAST_SECONDS = 300;

  private FuzzCommand() {}

  static String names(List<Target> targets) {
    return targets.stream().map(Target::name).collect(Collectors.joining(","));
  }

  /// @param arguments the folder for findings, the seconds, and `all` or a list of targets with
  ///     commas between them
  public static void main(String[] arguments) throws Exception {
    List<Target> targets = arguments[2].equals("all") ? Targets.all() : Search.chosen(arguments[2]);
    if (targets.isEmpty() || !arguments[1].matches("[1-9]\\d{0,6}")) {
      System.err.println(
          "usage: .ci/fuzz SECONDS [TARGET,...]; the targets are " + names(Targets.all()));
      System.exit(2);
    }
    System.exit(run(Path.of(arguments[0]), Integer.parseInt(arguments[1]), targets) ? 0 : 1);
  }

  /// @return whether the search found nothing
  private static boolean run(Path folder, int seconds, List<Target> targets) throws Exception {
    int jobs = Integer.getInteger("gantry.fuzz.jobs", Runtime.getRuntime().availableProcessors());
    int groups =
        Math.clamp(
            (long) seconds * jobs / LEAST_SECONDS, Math.min(jobs, targets.size()), targets.size());
    int each = Math.max(1, (int) ((long) seconds * jobs / groups));
    List<SearchProcess> searches = new ArrayList<>();
    for (int i = 0; i < groups; i++) {
      int group = i;
      searches.add(
          new SearchProcess(
              folder,
              IntStream.range(0, targets.size())
                  .filter(at -> at % groups == group)
                  .mapToObj(targets::get)
                  .toList(),
              each));
    }
    System.out.printf(
        "%-24s %12s %9s %7s %8s %8s %8s%n",
        "target", "executions", "each s", "taken", "slowest", "corpus", "findings");
    Totals totals = new Totals();
    try (ExecutorService running = Executors.newFixedThreadPool(jobs)) {
      List<Future<List<SearchProcess.Outcome>>> ends =
          searches.stream().map(running::submit).toList();
      for (Future<List<SearchProcess.Outcome>> end : ends) {
        end.get().forEach(totals::add);
      }
    }
    totals.print();
    return totals.findings == 0;
  }

  private static final class Totals {
    private long executions;
    private long nanos;
    private int corpus;
    private int findings;

    void add(SearchProcess.Outcome outcome) {
      Counts counts = outcome.counts();
      executions += counts.executions;
      nanos += counts.nanos;
      corpus += outcome.corpus();
      findings += outcome.findings().size();
      print(
          counts.target,
          counts.executions,
          counts.nanos,
          "%5.1f %%".formatted(100.0 * counts.taken / Math.max(1, counts.executions)),
          "%.0f ms".formatted(counts.slowestNanos / 1e6),
          outcome.corpus(),
          outcome.findings().size());
      outcome.findings().forEach(found -> System.out.println("  " + found));
    }

    void print() {
      print("all", executions, nanos, "", "", corpus, findings);
    }

    private static void print(
        String name,
        long executions,
        long nanos,
        String taken,
        String slowest,
        int corpus,
        int findings) {
      System.out.printf(
          Locale.ROOT,
          "%-24s %,12d %,9.0f %7s %8s %,8d %8d%n",
          name,
          executions,
          executions / Math.max(1e-3, nanos / 1e9),
          taken,
          slowest,
          corpus,
          findings);
    }
  }
}
