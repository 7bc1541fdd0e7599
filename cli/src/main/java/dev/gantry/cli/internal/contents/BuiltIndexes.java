// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/// Indexes and checksums that were written, and what they say of their files.
///
/// @param files TFRecord
/// @param sums of weights
public record BuiltIndexes(List<Built> files, List<Summed> sums) implements Report {
  /// @param seconds that it took
  public record Built(Location file, TfRecordIndex.Summary summary, double seconds) {}

  /// @param seconds that it took
  public record Summed(Path file, int tensors, double seconds) {}

  @Override
  public void print(PrintWriter out) {
    for (Summed each : sums) {
      out.printf(
          Locale.ROOT,
          "%s: checksums of %,d tensors, %.3f s%n",
          Table.line(each.file().toString()),
          each.tensors(),
          each.seconds());
    }
    for (Built each : files) {
      List<TfRecordIndex.Feature> features = each.summary().features();
      out.printf(
          Locale.ROOT,
          "%s: %,d records, %,d features, %.3f s%n",
          Table.line(each.file().toString()),
          each.summary().records(),
          features.size(),
          each.seconds());
      for (TfRecordIndex.Feature feature : features) {
        feature
            .obstacle()
            .ifPresent(obstacle ->
                out.printf(
                    "  %s must be parsed: %s%n",
                    Table.line("'" + feature.name() + "'"), Table.line(obstacle.describe())));
      }
    }
  }

  @Override
  public Object json() {
    return Json.object()
        .with("files", files.stream().map(BuiltIndexes::json).toList())
        .with("sums", sums.stream().map(BuiltIndexes::json).toList());
  }

  private static Object json(Built built) {
    return Json.object()
        .with("file", built.file())
        .with("index", TfRecordIndex.indexFile(built.file()))
        .with("records", built.summary().records())
        .with("bytes", built.summary().recordBytes())
        .with(
            "features",
            Json.byName(
                built.summary().features(), TfRecordIndex.Feature::name, BuiltIndexes::json))
        .with("seconds", built.seconds());
  }

  private static Object json(Summed summed) {
    return Json.object()
        .with("file", summed.file())
        .with("sums", SafetensorsSums.sumsFile(summed.file()))
        .with("tensors", summed.tensors())
        .with("seconds", summed.seconds());
  }

  private static Object json(TfRecordIndex.Feature feature) {
    return Json.object()
        .with("kind", feature.kind().map(kind -> kind.name().toLowerCase(Locale.ROOT)).orElse(""))
        .with("missing", feature.missing())
        .with("length", feature.elements().isPresent() ? feature.elements().getAsLong() : "varies")
        .with(
            "absence", feature.obstacle().map(TfRecordIndex.Feature.Obstacle::describe).orElse(""));
  }
}
