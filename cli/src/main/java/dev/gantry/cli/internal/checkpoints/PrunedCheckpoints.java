// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.cli.internal.checkpoints.ListedCheckpoints.Row;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.TransferException;
import dev.gantry.formats.internal.checkpoint.SavedCheckpoints;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/// Reports which checkpoints were removed, or would be removed with `--yes`.
///
/// @param rows the rows of all checkpoints, as they were before the removal
/// @param removed the names of the checkpoints that no rule keeps
/// @param unfinished the names of the folders that unfinished saves have left behind, which are
///     removed, too
/// @param done whether the checkpoints and folders were removed
/// @param failures says for each other checkpoint that no rule keeps why it could not be removed
public record PrunedCheckpoints(
    List<Row> rows,
    List<String> removed,
    List<String> unfinished,
    boolean done,
    List<TransferException> failures)
    implements Report {
  private static final int EXIT_IO = 74;

  public static PrunedCheckpoints of(
      ListedCheckpoints listed,
      SavedCheckpoints.Pruned pruned,
      List<String> unfinished,
      boolean done) {
    return new PrunedCheckpoints(
        listed.rows(),
        pruned.removed().stream().map(ListedCheckpoints::name).toList(),
        unfinished,
        done,
        pruned.failures());
  }

  private Stream<Row> gone() {
    return rows.stream().filter(row -> removed.contains(row.name()));
  }

  private long bytes() {
    return gone().mapToLong(row -> row.bytes().orElse(0L)).sum();
  }

  @Override
  public void print(PrintWriter out) {
    String verb = done ? "removed " : "would remove ";
    Stream.concat(removed.stream(), unfinished.stream()).forEach(name -> out.println(verb + name));
    out.printf(
        Locale.ROOT,
        "%,d of %,d checkpoints%s, %,d bytes%s%n",
        removed.size(),
        rows.stream().filter(row -> row.state().equals("complete")).count(),
        done ? " removed" : " would be removed",
        bytes(),
        done || (removed.isEmpty() && unfinished.isEmpty())
            ? ""
            : "; nothing has changed: --yes removes them");
  }

  @Override
  public int exitCode(PrintWriter err) {
    failures.forEach(failure -> err.println("gantry: " + failure.getMessage()));
    return failures.isEmpty() ? 0 : EXIT_IO;
  }

  @Override
  public Object json() {
    return Json.object()
        .with("removed", removed)
        .with("unfinished", unfinished)
        .with("bytes", bytes())
        .with("done", done)
        .with(
            "kept",
            rows.stream()
                .filter(row -> !removed.contains(row.name()) && !unfinished.contains(row.name()))
                .toList());
  }
}
