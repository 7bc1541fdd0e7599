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

/// The entry that Jazzer calls in a JVM of its own: an input's first byte chooses among the
/// targets of this JVM.
public final class Search {
  /// A target that takes longer than the others is passed over when it has had this many times its share.
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

  /// The targets of these names, in the order of the table.
  static List<Target> chosen(String names) {
    Set<String> wanted = Set.of(names.split(","));
    return Targets.all().stream().filter(target -> wanted.contains(target.name())).toList();
  }

  /// Nothing, or what the JVM counted whose search this one goes on with.
  private static Counts[] counts() {
    try {
      return Files.exists(COUNTS)
          ? Files.readAllLines(COUNTS).stream().map(Counts::of).toArray(Counts[]::new)
          : TARGETS.stream().map(target -> new Counts(target.name())).toArray(Counts[]::new);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Jazzer tells of connections that an input leads to; those to this machine are the targets' own.
  public static void fuzzerInitialize() {
    var _ = BugDetectors.allowNetworkConnections((host, _) -> LOCAL.contains(host));
  }

  /// Tries one input.
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

  /// Jazzer ends the JVM without a word, so what was counted is written while it runs.
  private static void write() throws IOException {
    Path next = Path.of(COUNTS + ".new");
    Files.write(next, Arrays.stream(counts).map(Counts::line).toList());
    Path _ = Files.move(next, COUNTS, StandardCopyOption.REPLACE_EXISTING);
  }
}
