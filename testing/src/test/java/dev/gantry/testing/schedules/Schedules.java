// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.schedules;

import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Explores scenarios in a JVM of its own, because the JDK's virtual threads must be opened for
/// the explorer.
///
/// A build explores up to 300 schedules of each scenario with at most 1 preemption;
/// `-Dgantry.schedules.preemptions=3` and `-Dgantry.schedules.most=1000000` explore more.
public final class Schedules {
  private Schedules() {}

  /// @return a description of the explored schedules
  /// @throws AssertionError if a scenario fails in any schedule
  @SafeVarargs
  public static String requireGood(Class<? extends Scenario>... scenarios)
      throws IOException, InterruptedException {
    List<Object> arguments = new ArrayList<>();
    arguments.add(Integer.getInteger("gantry.schedules.preemptions", 1));
    arguments.add(Long.getLong("gantry.schedules.most", 300));
    for (Class<?> scenario : scenarios) {
      arguments.add(scenario.getName());
    }
    Process child =
        ChildJvm.command(
                List.of("--add-opens=java.base/java.lang=ALL-UNNAMED", "-Xmx512m"),
                Schedules.class,
                arguments.toArray())
            .redirectErrorStream(true)
            .start();
    String said = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (child.waitFor() != 0) {
      throw new AssertionError(said);
    }
    return said;
  }

  /// The program that explores: `PREEMPTIONS MOST SCENARIO...`
  public static void main(String[] arguments) throws ClassNotFoundException {
    boolean good = true;
    for (String name : List.of(arguments).subList(2, arguments.length)) {
      long start = System.nanoTime();
      Explorer.Result result =
          Explorer.explore(
              Class.forName(name), Integer.parseInt(arguments[0]), Long.parseLong(arguments[1]));
      System.out.printf(
          Locale.ROOT,
          "%s: %,d schedules in %.1f s%s%n",
          name.substring(name.lastIndexOf('.') + 1),
          result.schedules(),
          (System.nanoTime() - start) / 1e9,
          result.failure().isEmpty() ? "" : ": " + result.failure());
      good &= result.failure().isEmpty();
    }
    System.exit(good ? 0 : 1);
  }
}
