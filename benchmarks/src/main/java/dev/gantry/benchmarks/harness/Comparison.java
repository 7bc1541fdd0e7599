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
import java.util.stream.IntStream;

/// Runs contenders that do the same work in turns, and prints a line for each: rate, spread, time,
/// share of the first contender's rate, how many cores all threads of this process kept busy, and
/// the heap memory that they allocated. The first turn compiles the code and does not count.
public final class Comparison {
  private static final OperatingSystemMXBean SYSTEM =
      ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
  private static final ThreadMXBean THREADS =
      ManagementFactory.getPlatformMXBean(ThreadMXBean.class);

  private final String title;
  private final long bytes;
  private final List<Measured> contenders = new ArrayList<>();
  private long samples;
  private Turns.Preparation before = () -> {};

  /// @param title the title, which says what the contenders do
  /// @param bytes the bytes of one run
  public Comparison(String title, long bytes) {
    this.title = title;
    this.bytes = bytes;
  }

  /// Sets how many samples one run has.
  public Comparison samples(long count) {
    samples = count;
    return this;
  }

  /// Reads files into the page cache before each run, because some systems evict files that are
  /// not read for a while.
  public Comparison warm(List<Path> files) {
    return before(() -> files.forEach(PageCache::warm));
  }

  /// Establishes the same conditions before each run.
  public Comparison before(Turns.Preparation preparation) {
    before = preparation;
    return this;
  }

  /// Adds a contender. The first one is the reference of the others.
  public Comparison add(Contender contender) {
    contenders.add(new Measured(contender, new ArrayList<>(), new ArrayList<>()));
    return this;
  }

  public Comparison addAll(List<Contender> all) {
    all.forEach(this::add);
    return this;
  }

  public Comparison add(String name, Contender.Work work) {
    return add(Contender.of(name, work));
  }

  /// @param expected the value that the work must return
  public Comparison add(String name, long expected, Contender.Counted work) {
    return add(Contender.of(name, expected, work));
  }

  public Comparison addTimed(String name, Contender.Timed work) {
    return add(Contender.timed(name, "", work));
  }

  /// A contender whose runs are measured besides.
  private record Measured(Contender contender, List<Double> cores, List<Double> heap)
      implements Contender {
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

  /// Runs the contenders and prints the results.
  ///
  /// @throws IllegalStateException if a contender failed
  public void print(int turns) throws Exception {
    System.out.printf(
        Locale.ROOT,
        "# %s: %,d samples, %,d bytes, %d turns; load average %.2f%n",
        title,
        samples,
        bytes,
        turns,
        SYSTEM.getSystemLoadAverage());
    List<Spread> rates = rates(turns);
    for (int i = 0; i < contenders.size(); i++) {
      Measured one = contenders.get(i);
      Spread rate = rates.get(i);
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
          contenders.getFirst().name(),
          samples == 0
              ? ""
              : String.format(
                  Locale.ROOT, "%,.0f samples/s, ", rate.median() * 1e9 / bytes * samples),
          Measured.median(one.cores()),
          Measured.median(one.heap()));
    }
  }

  /// Runs the contenders.
  ///
  /// @return GB/s of each contender
  List<Spread> rates(int turns) throws Exception {
    Turns all = new Turns(List.copyOf(contenders), turns, Long.MAX_VALUE, System::nanoTime);
    try {
      all.run(
          () -> {
            before.run();
            // Garbage of earlier contenders is collected first, off the clock.
            System.gc();
          },
          true,
          Long.MAX_VALUE);
    } finally {
      contenders.forEach(Measured::close);
    }
    if (!all.failures().isEmpty()) {
      throw new IllegalStateException(title + ": " + all.failures());
    }
    return IntStream.range(0, contenders.size())
        .mapToObj(
            i -> Spread.of(all.seconds(i).stream().map(seconds -> bytes / 1e9 / seconds).toList()))
        .toList();
  }
}
