// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import dev.gantry.benchmarks.harness.Folders;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Runs all activities at once for a given time, with random faults: `soak MINUTES [DEVICE,DEVICE…
/// [SEED [FOLDER]]]`.
///
/// The time is divided into phases. In a phase, each activity runs on a thread of its own, beside
/// the others. Between two phases nothing runs, and the process must hold the same resources as
/// after the first phase. Every byte that is read is compared with what was written. The exit code
/// is 1 after a wrong byte, a leak, an exception that no fault excuses, or a stall.
public final class Soak {
  private static final long STALL_SECONDS = 300;
  private static final int TIMERS = 4;

  /// How long Gantry's threads may run after the last work: many wait ten seconds for further
  /// work.
  private static final long LAST_THREADS_SECONDS = 120;

  private static final Duration THREADS_LOOK = Duration.ofMillis(200);

  /// The resident memory of the last phases may exceed that of the first ones by this much,
  /// including the pages of the Java heap. The arenas of the allocator and the heap grow for some
  /// minutes. Ten leaked loads exceed this limit.
  private static final long GROWTH_BYTES = 320L << 20;

  private static final int MOST_MAPPINGS = 10;

  private static final long DIRECT_GROWTH_BYTES = 1L << 20;

  private final Path folder;
  private final List<Device> devices;
  private final long seed;
  private final Tally tally = new Tally();
  private final List<ProcessState> states = new ArrayList<>();
  private final List<String> faults = new ArrayList<>();
  private final KnownWeights weights;
  private final KnownSamples samples;

  private Soak(Path folder, List<Device> devices, long seed) throws IOException {
    this.folder = folder;
    this.devices = devices;
    this.seed = seed;
    this.weights = KnownWeights.make(folder.resolve("known.safetensors"));
    this.samples = KnownSamples.make(folder.resolve("samples"));
  }

  public static void main(String[] arguments) throws Exception {
    // libtorch's threads spin while they wait for each other, on a busy machine for minutes.
    System.setProperty("ai.djl.pytorch.num_threads", "1");
    // Without this, each fault would log a warning.
    System.setProperty("org.slf4j.simpleLogger.log.dev.gantry", "error");
    double minutes = Double.parseDouble(arguments[0]);
    List<Device> devices = devices(arguments.length > 1 ? arguments[1] : "");
    long seed = arguments.length > 2 ? Long.parseLong(arguments[2]) : System.nanoTime();
    Path parent =
        Path.of(arguments.length > 3 ? arguments[3] : System.getProperty("java.io.tmpdir"));
    Path folder = Files.createTempDirectory(Files.createDirectories(parent), "gantry-soak-");
    System.out.printf("soak of %s minutes on %s, seed %d, in %s%n", minutes, devices, seed, folder);
    boolean good;
    try {
      good = new Soak(folder, devices, seed).run((long) (minutes * 60e9));
    } finally {
      Folders.remove(folder);
    }
    System.exit(good ? 0 : 1);
  }

  /// Returns the named devices; if none is named, the first GPU, or the CPU if there is no GPU.
  private static List<Device> devices(String names) {
    if (names.isEmpty()) {
      return devices(GantrySession.bestDevice().toString());
    }
    return Stream.of(names.split(",", -1))
        .map(name ->
            switch (dev.gantry.core.Device.parse(name)) {
              case dev.gantry.core.Device.Host _ -> Device.cpu();
              case dev.gantry.core.Device.Cuda(int ordinal) -> Device.gpu(ordinal);
            })
        .toList();
  }

  private boolean run(long nanos) throws Exception {
    long begin = System.nanoTime();
    // The first phase is short. It loads classes, compiles code, and fills what libraries keep.
    long phase = Math.clamp(nanos / 20, TimeUnit.SECONDS.toNanos(10), TimeUnit.MINUTES.toNanos(3));
    for (int number = 0; faults.isEmpty() && System.nanoTime() - begin < nanos; number++) {
      phase(number, System.nanoTime() + Math.min(phase, begin + nanos - System.nanoTime()));
      ProcessState state = ProcessState.now(folder, devices);
      states.add(state);
      check(number, state);
      System.out.printf(
          Locale.ROOT,
          "%5d s: %,d operations, %,d faults, %,d MB compared; %s%n",
          TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begin),
          Tally.total(tally.operations()),
          Tally.total(tally.faults()),
          tally.verifiedBytes() / 1_000_000,
          state);
    }
    checkThreads();
    checkGrowth();
    report();
    return faults.isEmpty();
  }

  private void phase(int number, long end) throws Exception {
    Path own = Files.createDirectory(folder.resolve("p" + number));
    var timer =
        new ScheduledThreadPoolExecutor(
            TIMERS, Thread.ofPlatform().daemon().name("soak-timer-", 0).factory());
    try (GantrySession session = GantrySession.open()) {
      Scene scene = new Scene(own, devices, seed + number, weights, samples, session, timer, tally);
      List<Activity> activities = Activities.of(scene);
      List<Thread> threads = new ArrayList<>();
      for (Activity activity : activities) {
        threads.add(
            Thread.ofPlatform()
                .name("soak-" + activity.getClass().getSimpleName())
                .start(() -> {
                  try {
                    activity.run(end);
                  } catch (Exception | Error e) {
                    fail(e + ", seed " + seed + ", phase " + number, e);
                  }
                }));
      }
      for (int i = 0; i < threads.size(); i++) {
        join(threads.get(i), activities);
      }
    } finally {
      timer.shutdown();
      var _ = timer.awaitTermination(1, TimeUnit.MINUTES);
      Folders.remove(own);
    }
  }

  /// Waits for a thread, and ends the process if any activity stalls meanwhile.
  private void join(Thread thread, List<Activity> activities) throws InterruptedException {
    while (!thread.join(Duration.ofSeconds(5))) {
      Optional<Activity> stalled =
          activities.stream().filter(activity -> activity.seconds() > STALL_SECONDS).findFirst();
      if (stalled.isPresent()) {
        System.out.printf(
            "STALLED for %d s: %s, seed %d%n",
            stalled.get().seconds(), stalled.get().doing(), seed);
        Thread.getAllStackTraces()
            .forEach((each, stack) -> {
              System.out.println(each);
              Stream.of(stack).forEach(frame -> System.out.println("\tat " + frame));
            });
        Runtime.getRuntime().halt(1);
      }
    }
  }

  private synchronized void fail(String what, @Nullable Throwable reason) {
    faults.add(what);
    System.out.println("FAILED: " + what);
    if (reason != null) {
      reason.printStackTrace(System.out);
    }
  }

  private void check(int number, ProcessState state) {
    if (!state.held().equals(LiveResources.Snapshot.NOTHING)) {
      fail("phase " + number + " leaves " + state.held(), null);
    }
    if (!state.folderFiles().isEmpty()) {
      fail("phase " + number + " leaves files open or mapped: " + state.folderFiles(), null);
    }
    ProcessState first = states.getFirst();
    state
        .descriptors()
        .forEach((kind, count) -> {
          long before = first.descriptors().getOrDefault(kind, 0L);
          // The JDK opens some for each processor when a virtual thread first waits, as of the
          // servers of tests.
          long pollers =
              kind.contains("[eventpoll]") ? Runtime.getRuntime().availableProcessors() + 3L : 0;
          if (count > before + pollers) {
            fail(
                "phase %d leaves %d descriptors of %s; the first one left %d; sockets: %s"
                    .formatted(number, count, kind, before, state.sockets()),
                null);
          }
        });
  }

  /// Waits until none of Gantry's threads runs. A thread that a phase has leaked still runs
  /// afterwards.
  private void checkThreads() throws InterruptedException {
    long begin = System.nanoTime();
    SortedMap<String, Long> left = ProcessState.ownThreads();
    System.out.printf("threads after the last phase: %s%n", left);
    double seconds = 0;
    while (!left.isEmpty() && seconds < LAST_THREADS_SECONDS) {
      Thread.sleep(THREADS_LOOK);
      seconds = (System.nanoTime() - begin) / 1e9;
      left = ProcessState.ownThreads();
    }
    System.out.printf(Locale.ROOT, "%.1f s later: %s%n", seconds, left);
    if (!left.isEmpty()) {
      fail("threads that no work needs still run: " + left, null);
    }
  }

  /// Compares the last third of the phases with the first third.
  private void checkGrowth() {
    if (states.size() < 6) {
      return;
    }
    int third = states.size() / 3;
    List<ProcessState> early = states.subList(1, 1 + third);
    List<ProcessState> late = states.subList(states.size() - third, states.size());
    if (grown("resident bytes", GROWTH_BYTES, early, late, ProcessState::residentBytes)) {
      printGrowth(early.getFirst().residentByName(), late.getLast().residentByName());
    }
    boolean _ =
        grown(
            "bytes of direct buffers", DIRECT_GROWTH_BYTES, early, late, ProcessState::directBytes);
    boolean _ = grown("threads of others", 4, early, late, ProcessState::foreignThreads);
    boolean _ = grown("mappings", 200, early, late, ProcessState::mappings);
    boolean _ = grown("bytes of the devices", GROWTH_BYTES, early, late, ProcessState::deviceBytes);
  }

  /// Prints which mappings have more memory than before, the ones that grew most first.
  private static void printGrowth(Map<String, Long> before, Map<String, Long> after) {
    after.entrySet().stream()
        .map(entry ->
            Map.entry(entry.getKey(), entry.getValue() - before.getOrDefault(entry.getKey(), 0L)))
        .filter(entry -> entry.getValue() > 0)
        .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
        .limit(MOST_MAPPINGS)
        .forEach(
            entry -> System.out.printf("  %,15d more: %s%n", entry.getValue(), entry.getKey()));
  }

  /// @return whether it has grown by more than `most`
  private boolean grown(
      String what,
      long most,
      List<ProcessState> early,
      List<ProcessState> late,
      ToLongFunction<ProcessState> figure) {
    long before = median(early, figure);
    long after = median(late, figure);
    System.out.printf(Locale.ROOT, "%s: %,d early, %,d late%n", what, before, after);
    boolean grew = after - before > most;
    if (grew) {
      fail("%s grew from %,d to %,d".formatted(what, before, after), null);
    }
    return grew;
  }

  private static long median(List<ProcessState> states, ToLongFunction<ProcessState> figure) {
    long[] figures = states.stream().mapToLong(figure).sorted().toArray();
    return figures[figures.length / 2];
  }

  private void report() {
    System.out.println("operations:");
    tally.operations().forEach((kind, count) -> System.out.printf("  %-32s %,10d%n", kind, count));
    System.out.println("faults survived:");
    SortedMap<String, Long> failures = tally.failures();
    tally
        .faults()
        .forEach((kind, count) ->
            System.out.printf(
                Locale.ROOT,
                "  %-32s %,10d, of which operations failed: %,d%n",
                kind,
                count,
                failures.get(kind)));
    System.out.printf(
        Locale.ROOT,
        "%,d operations, %,d faults, %,d bytes compared, %d failures%n",
        Tally.total(tally.operations()),
        Tally.total(tally.faults()),
        tally.verifiedBytes(),
        faults.size());
  }
}
