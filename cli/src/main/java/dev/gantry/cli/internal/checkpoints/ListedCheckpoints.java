// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import dev.gantry.formats.internal.checkpoint.Manifest;
import java.io.PrintWriter;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/// Reports the checkpoints of a folder: the complete ones in the order of their saves, then
/// damaged and unfinished ones.
///
/// @param rated whether retention rules were given, so that each row shows which rules keep the
///     checkpoint
public record ListedCheckpoints(List<Row> rows, boolean rated) implements Report {
  /// One checkpoint of the folder.
  ///
  /// @param state `complete`, `damaged` or `unfinished`
  /// @param reason why the checkpoint is not complete; empty if it is
  /// @param saved when the checkpoint's save ended; empty if the checkpoint is not complete, or
  ///     the store does not tell
  /// @param bytes the size of the checkpoint's files, without the manifest
  /// @param tags `latest`; `replaced` if a later save has the same step; `not-finite` if a
  ///     parameter is NaN or infinite
  /// @param kept the rules that keep the checkpoint; empty if no rules were given, or the
  ///     checkpoint is not complete
  public record Row(
      String name,
      String state,
      String reason,
      Optional<Long> step,
      Optional<Instant> saved,
      Optional<Long> bytes,
      Map<String, Double> metrics,
      Map<String, String> metadata,
      List<String> tags,
      Optional<List<String>> kept) {
    static Row without(String name, String state, String reason) {
      return new Row(
          name,
          state,
          reason,
          Optional.empty(),
          Optional.empty(),
          Optional.empty(),
          Map.of(),
          Map.of(),
          List.of(),
          Optional.empty());
    }
  }

  /// Reads the manifests, and checks that their files exist with the recorded sizes.
  public static ListedCheckpoints of(CheckpointListing listing, Optional<Retention> retention) {
    List<Row> rows = new ArrayList<>();
    List<CheckpointFolder> whole = new ArrayList<>();
    List<Row> damaged = new ArrayList<>();
    for (CheckpointFolder checkpoint : listing.saves()) {
      try {
        // The manifest is not cached, because the manifests of many checkpoints would take much
        // memory.
        checkpoint.afresh().checkSizes();
        whole.add(checkpoint);
      } catch (MalformedFileException e) {
        damaged.add(damaged(e));
      } catch (TransferException e) {
        if (!e.isNotFound()) {
          throw e;
        }
        // The checkpoint was removed after the folder was listed.
      }
    }
    Optional<Map<CheckpointFolder, Set<Retention.Rule>>> kept =
        retention.map(rules -> rules.kept(whole));
    Set<CheckpointFolder> current = Retention.ALL.kept(whole).keySet();
    for (CheckpointFolder checkpoint : whole) {
      List<String> tags = new ArrayList<>();
      if (checkpoint.equals(whole.getLast())) {
        tags.add("latest");
      }
      if (!current.contains(checkpoint)) {
        tags.add("replaced");
      }
      if (!checkpoint.isFinite()) {
        tags.add("not-finite");
      }
      rows.add(row(checkpoint, tags, kept.map(all -> all.getOrDefault(checkpoint, Set.of()))));
    }
    rows.addAll(damaged);
    listing.damaged().forEach(reason -> rows.add(damaged(reason)));
    listing
        .unfinished()
        .forEach(name -> rows.add(Row.without(name, "unfinished", "the folder has no manifest")));
    return new ListedCheckpoints(rows, retention.isPresent());
  }

  private static Row damaged(MalformedFileException reason) {
    return Row.without(
        CheckpointFolder.folderName(reason.file()).toString(),
        "damaged",
        String.valueOf(reason.getMessage()));
  }

  private static Row row(
      CheckpointFolder checkpoint, List<String> tags, Optional<Set<Retention.Rule>> kept) {
    Manifest manifest = checkpoint.afresh().manifest();
    return new Row(
        name(checkpoint),
        "complete",
        "",
        Optional.of(checkpoint.step()),
        checkpoint.saved(),
        Optional.of(manifest.files().stream().mapToLong(Manifest.FileEntry::size).sum()),
        manifest.metrics(),
        manifest.metadata(),
        tags,
        kept.map(
            rules -> rules.stream().map(rule -> rule.name().toLowerCase(Locale.ROOT)).toList()));
  }

  static String name(CheckpointFolder checkpoint) {
    return checkpoint.folder().getFileName().toString();
  }

  @Override
  public void print(PrintWriter out) {
    if (rows.isEmpty()) {
      out.println("no checkpoints");
      return;
    }
    Table table =
        new Table(
            "checkpoint", "step", "saved", "bytes", "state", "tags", "kept by", "metrics", "notes");
    for (Row row : rows) {
      table.row(
          row.name(),
          row.step().map(String::valueOf).orElse("-"),
          row.saved().map(time -> time.truncatedTo(ChronoUnit.SECONDS).toString()).orElse("-"),
          row.bytes().map(String::valueOf).orElse("-"),
          row.state(),
          listed(row.tags()),
          row.kept().map(ListedCheckpoints::listed).orElse(rated ? "-" : ""),
          pairs(row.metrics()),
          pairs(row.metadata()));
    }
    table.print(out);
    rows.stream()
        .filter(row -> row.state().equals("damaged"))
        .forEach(row -> out.println(Table.line(row.reason())));
  }

  private static String listed(List<String> words) {
    return words.isEmpty() ? "-" : String.join(", ", words);
  }

  private static String pairs(Map<String, ?> pairs) {
    return pairs.entrySet().stream()
        .map(pair -> pair.getKey() + "=" + pair.getValue())
        .collect(Collectors.joining(" "));
  }

  @Override
  public Object json() {
    return Json.object().with("checkpoints", rows);
  }
}
