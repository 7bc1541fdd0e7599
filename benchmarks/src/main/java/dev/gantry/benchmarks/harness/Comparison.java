// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import dev.gantry.benchmarks.result.Spread;
import dev.gantry.core.internal.store.PageCache;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Contenders that do the same work in turns, printed as a line each: rate, spread, time, share of the first one's rate, how
/// many cores all threads of this process kept busy, and what they allocated on the heap. The first turn compiles the
/// code, and does not count.
///
/// @param title what is done
/// @param samples of one run; 0 where there are none
/// @param bytes of one run
/// @param files which are brought into the page cache before each run
/// @param contenders the one that the others are compared with first
public record Comparison(
    String title, long samples, long bytes, List<Path> files, List<Contender> contenders) {
  private static final OperatingSystemMXBean SYSTEM =
      ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
  private static final ThreadMXBean THREADS =
      ManagementFactory.getPlatformMXBean(ThreadMXBean.class);

  public Comparison {
    files = List.copyOf(files);
    contenders = List.copyOf(contenders);
  }

  /// A contender whose runs are measured besides.
  private record Measured(Contender contender, List<Double> cores, List<Double> heap)
      implements Contender {
    Measured(Contender contender) {
      this(contender, new ArrayList<>(), new ArrayList<>());
    }

    @Override
    public String name() {
      return contender.name();
    }

    @Override
    public double run() throws Exception {
      long cpu = SYSTEM.getProcessCpuTime();
      long allocated = THREADS.getTotalThreadAllocatedBytes();
      long start = System.nanoTime();
      double seconds = contender.run();
      cores.add((SYSTEM.getProcessCpuTime() - cpu) / (double) (System.nanoTime() - start));
      heap.add((THREADS.getTotalThreadAllocatedBytes() - allocated) / 1e6);
      return seconds;
    }

    @Override
    public void close() {
      contender.close();
    }

    /// Without the turn that does not count.
    static double median(List<Double> values) {
      return Spread.of(values.subList(1, values.size())).median();
    }
  }

  /// Lets them run, with the files in the page cache.
  public List<Spread> print(int turns) throws Exception {
    // Some systems drop files from the page cache that are not read for a while.
    return print(turns, () -> files.forEach(PageCache::warm));
  }

  /// Lets them run and prints what came of it.
  ///
  /// @param before makes the conditions the same before each run
  /// @return GB/s of each contender
  /// @throws IllegalStateException if one failed
  public List<Spread> print(int turns, Turns.Preparation before) throws Exception {
    System.out.printf(
        Locale.ROOT,
        "# %s: %,d samples, %,d bytes, %d turns; load average %.2f%n",
        title,
        samples,
        bytes,
        turns,
        SYSTEM.getSystemLoadAverage());
    List<Measured> measured = contenders.stream().map(Measured::new).toList();
    Turns all = new Turns(List.copyOf(measured), turns, Long.MAX_VALUE, System::nanoTime);
    try {
      all.run(
          () -> {
            before.run();
            // No contender collects the garbage of another.
            System.gc();
          },
          true,
          Long.MAX_VALUE);
    } finally {
      measured.forEach(Measured::close);
    }
    if (!all.failures().isEmpty()) {
      throw new IllegalStateException(title + ": " + all.failures());
    }
    List<Spread> rates = new ArrayList<>();
    for (int i = 0; i < measured.size(); i++) {
      Measured one = measured.get(i);
      Spread rate =
          Spread.of(all.seconds(i).stream().map(seconds -> bytes / 1e9 / seconds).toList());
      rates.add(rate);
      System.out.printf(
          Locale.ROOT,
          "= %s\t%s\t%s GB/s (%s-%s), %.1f ms\t%.3f of %s\t%s%.1f cores, %.1f MB of heap%n",
          title,
          one.name(),
          Spread.rate(rate.median()),
          Spread.rate(rate.least()),
          Spread.rate(rate.most()),
          bytes / 1e6 / rate.median(),
          rate.median() / rates.getFirst().median(),
          measured.getFirst().name(),
          samples == 0
              ? ""
              : String.format(
                  Locale.ROOT, "%,.0f samples/s, ", rate.median() * 1e9 / bytes * samples),
          Measured.median(one.cores()),
          Measured.median(one.heap()));
    }
    return rates;
  }
}
