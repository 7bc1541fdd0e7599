// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;

/// Reports which files have a usable index.
public record CheckedIndexes(List<Checked> files) implements Report {
  public record Checked(Location file, IndexState state) {}

  /// The exit code if a file has no usable index, though the file itself may be intact.
  private static final int EXIT_UNUSABLE = 1;

  /// Prints the usable indexes. [#exitCode] prints why the others are not usable.
  @Override
  public void print(PrintWriter out) {
    for (Checked each : files) {
      each.state()
          .summary()
          .ifPresent(summary ->
              out.printf(
                  Locale.ROOT,
                  "%s: usable, %,d records, %,d features%n",
                  Table.line(each.file().toString()),
                  summary.records(),
                  summary.features().size()));
    }
  }

  @Override
  public int exitCode(PrintWriter err) {
    List<IndexState> unusable =
        files.stream().map(Checked::state).filter(state -> !state.isUsable()).toList();
    unusable.forEach(state -> err.println("gantry: " + Table.line(state.absence())));
    return unusable.isEmpty() ? 0 : EXIT_UNUSABLE;
  }

  @Override
  public Object json() {
    return Json.object()
        .with(
            "files",
            files.stream().map(each -> each.state().json().with("file", each.file())).toList());
  }
}
