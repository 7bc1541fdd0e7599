// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import dev.gantry.benchmarks.result.Absence;
import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.Spread;
import java.io.PrintWriter;
import java.util.Locale;

/// Prints a bench's result on the terminal.
public final class BenchTable {
  private BenchTable() {}

  public static void print(Result result, PrintWriter out) {
    Table table =
        new Table(
            "group",
            "data",
            "cache",
            "contender",
            "median GB/s",
            "least-most GB/s",
            "runs",
            "share of ceiling");
    for (Group group : Group.values()) {
      for (Point point : result.points(group)) {
        Spread spread = point.spread();
        table.row(
            group.title(),
            point.what(),
            point.heat() == Heat.NONE ? "-" : point.heat().toString(),
            point.name(),
            Spread.rate(spread.median()),
            Spread.rate(spread.least()) + "-" + Spread.rate(spread.most()),
            Integer.toString(point.repeats().size()),
            result.ratio(point).isPresent()
                ? String.format(Locale.ROOT, "%.2f", result.ratio(point).getAsDouble())
                : "-");
      }
    }
    table.print(out);
    for (Absence absence : result.absences()) {
      out.println(
          "not measured: " + Table.line(absence.what()) + ": " + Table.line(absence.reason()));
    }
    if (result.run().shortened() > 0) {
      out.printf(
          Locale.ROOT,
          "%d points have fewer than %d repeats: the budget of %d s was used up%n",
          result.run().shortened(),
          result.run().repeats(),
          result.run().budgetSeconds());
    }
    out.flush();
  }
}
