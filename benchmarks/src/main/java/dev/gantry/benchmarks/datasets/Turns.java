// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import com.sun.management.OperatingSystemMXBean;
import dev.gantry.core.internal.store.PageCache;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Lets contestants run in turns, so that what else the machine does meets all of them alike. The
/// first turn compiles the code, and does not count.
///
/// @param name of what is done
/// @param samples in all
/// @param bytes in all
/// @param files which are brought into the page cache before each run
record Turns(
    String name, long samples, long bytes, List<Path> files, List<Contestant> contestants) {
  private static final OperatingSystemMXBean SYSTEM =
      ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

  Turns {
    files = List.copyOf(files);
    contestants = List.copyOf(contestants);
  }

  /// @param cores how many were busy, all threads of this process together
  private record Run(double seconds, double cores) {}

  /// Prints a line a run, and in the end a line a contestant.
  void run(int turns) throws Exception {
    List<List<Run>> runs = new ArrayList<>();
    System.out.printf(
        Locale.ROOT,
        "# %s: %,d samples, %,d bytes; load average %.2f%n",
        name,
        samples,
        bytes,
        SYSTEM.getSystemLoadAverage());
    contestants.forEach(_ -> runs.add(new ArrayList<>()));
    for (int turn = 0; turn <= turns; turn++) {
      for (int i = 0; i < contestants.size(); i++) {
        Run run = run(contestants.get(i));
        print(contestants.get(i).name(), turn == 0 ? "warm-up" : "turn " + turn, run);
        if (turn > 0) {
          runs.get(i).add(run);
        }
      }
    }
    for (int i = 0; i < contestants.size(); i++) {
      summarize(contestants.get(i).name(), runs.get(i));
    }
  }

  private Run run(Contestant contestant) throws Exception {
    // Some systems drop files from the page cache that are not read for a while.
    files.forEach(PageCache::warm);
    // No contestant collects the garbage of another.
    System.gc();
    long cpu = SYSTEM.getProcessCpuTime();
    long start = System.nanoTime();
    long done = contestant.work().run();
    double nanos = System.nanoTime() - start;
    double cores = (SYSTEM.getProcessCpuTime() - cpu) / nanos;
    if (done != contestant.expected()) {
      throw new IllegalStateException(
          contestant.name() + ": " + done + " done, not " + contestant.expected());
    }
    return new Run(nanos / 1e9, cores);
  }

  private void print(String contestant, String turn, Run run) {
    System.out.printf(
        Locale.ROOT,
        "%s\t%s\t%.2f GB/s\t%s, %,.0f samples/s, %.1f cores%n",
        name,
        contestant,
        bytes / 1e9 / run.seconds(),
        turn,
        samples / run.seconds(),
        run.cores());
  }

  private void summarize(String contestant, List<Run> runs) {
    double[] rates =
        runs.stream().mapToDouble(run -> bytes / 1e9 / run.seconds()).sorted().toArray();
    double[] cores = runs.stream().mapToDouble(Run::cores).sorted().toArray();
    double median = median(rates);
    System.out.printf(
        Locale.ROOT,
        "= %s\t%s\t%.2f GB/s (%.2f-%.2f)\t%,.0f samples/s, %.1f cores%n",
        name,
        contestant,
        median,
        rates[0],
        rates[rates.length - 1],
        median * 1e9 / bytes * samples,
        median(cores));
  }

  private static double median(double[] sorted) {
    int middle = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
