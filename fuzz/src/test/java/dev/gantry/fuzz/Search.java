// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import com.code_intelligence.jazzer.api.BugDetectors;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/// The entry that Jazzer calls in a JVM of its own. The first byte of an input chooses among the
/// targets of this JVM.
public final class Search {
  /// A target that has used this many times its share of the time is skipped.
  private static final int SHARES = 2;

  private static final long START_NANOS = 1_000_000_000;
  private static final long WRITE_NANOS = 500_000_000;
  private static final int INPUTS_BETWEEN_LOOKS = 500;

  private static final Set<String> LOCAL = Set.of("127.0.0.1", "localhost");
  private static final List<Target> TARGETS = chosen(System.getProperty("gantry.fuzz.targets", ""));
  private static final Path COUNTS = Path.of(System.getProperty("gantry.fuzz.counts", "counts"));
  private static final Counts[] counts = counts();

  private static long allNanos = Arrays.stream(counts).mapToLong(count -> count.nanos).sum();
  private static long writtenNanos;
  private static int inputs;

  private Search() {}

  /// Returns the targets with these names, in the order of the table.
  static List<Target> chosen(String names) {
    Set<String> wanted = Set.of(names.split(","));
    return Targets.all().stream().filter(target -> wanted.contains(target.name())).toList();
  }

  /// Returns empty counts, or the counts of the JVM whose search this JVM continues.
  private static Counts[] counts() {
    try {
      return Files.exists(COUNTS)
          ? Files.readAllLines(COUNTS).stream().map(Counts::of).toArray(Counts[]::new)
          : TARGETS.stream().map(target -> new Counts(target.name())).toArray(Counts[]::new);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Allows connections to this machine, which the targets make themselves; Jazzer reports all
  /// other connections that an input causes.
  public static void fuzzerInitialize() {
    var _ = BugDetectors.allowNetworkConnections((host, _) -> LOCAL.contains(host));
  }

  public static void fuzzerTestOneInput(byte[] data) throws IOException {
    if (data.length == 0) {
      return;
    }
    int chosen = (data[0] & 0xff) % TARGETS.size();
    Counts count = counts[chosen];
    if (TARGETS.size() > 1 && count.nanos > START_NANOS + SHARES * allNanos / TARGETS.size()) {
      return;
    }
    long start = System.nanoTime();
    try {
      boolean taken = Check.run(TARGETS.get(chosen), Arrays.copyOfRange(data, 1, data.length));
      count.taken += taken ? 1 : 0;
      if (++inputs % INPUTS_BETWEEN_LOOKS == 0) {
        Check.requireNothingHeld();
      }
    } finally {
      long now = System.nanoTime();
      count.executions++;
      count.nanos += now - start;
      count.slowestNanos = Math.max(count.slowestNanos, now - start);
      allNanos += now - start;
      if (now - writtenNanos > WRITE_NANOS) {
        writtenNanos = now;
        write();
      }
    }
  }

  /// Writes the counts during the search, because Jazzer ends the JVM without a shutdown hook.
  private static void write() throws IOException {
    Path next = Path.of(COUNTS + ".new");
    Files.write(next, Arrays.stream(counts).map(Counts::line).toList());
    Path _ = Files.move(next, COUNTS, StandardCopyOption.REPLACE_EXISTING);
  }
}
