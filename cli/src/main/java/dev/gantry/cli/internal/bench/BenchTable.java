// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.bench;

import dev.gantry.cli.internal.bench.result.Absence;
import dev.gantry.cli.internal.bench.result.Group;
import dev.gantry.cli.internal.bench.result.Heat;
import dev.gantry.cli.internal.bench.result.Point;
import dev.gantry.cli.internal.bench.result.Result;
import dev.gantry.cli.internal.bench.result.Spread;
import dev.gantry.cli.internal.output.Table;
import java.io.PrintWriter;
import java.util.Locale;

/// A bench's result on the terminal.
public final class BenchTable {
  private BenchTable() {}

  public static void print(Result result, PrintWriter out) {
    Table table = new Table("", "what", "cache", "by", "GB/s", "least-most", "runs", "of ceiling");
    for (Group group : Group.values()) {
      for (Point point : result.points(group)) {
        Spread spread = point.spread();
        table.row(
            group.title(),
            point.what(),
            point.heat() == Heat.NONE ? "-" : point.heat().toString(),
            point.name(),
            rate(spread.median()),
            rate(spread.least()) + "-" + rate(spread.most()),
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

  /// GB/s with three digits that count.
  public static String rate(double rate) {
    return String.format(Locale.ROOT, rate < 1 ? "%.3f" : rate < 100 ? "%.2f" : "%.0f", rate);
  }
}
