// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.formats.internal.index.TfRecordIndex;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;

/// Reports the indexes and the files of checksums that were written.
///
/// @param files the TFRecord files and tar archives that were indexed
/// @param sums the files of checksums that were written for weights
public record BuiltIndexes(List<Built> files, List<Summed> sums) implements Report {
  /// @param bytes the size of the records or samples
  /// @param seconds the duration of the indexing
  public record Built(
      Location file,
      Location index,
      long records,
      long bytes,
      SequencedMap<String, Feature> features,
      double seconds) {
    public static Built of(Location file, TfRecordIndex.Summary summary, double seconds) {
      SequencedMap<String, Feature> features = new LinkedHashMap<>();
      summary.features().forEach(feature -> features.put(feature.name(), Feature.of(feature)));
      return new Built(
          file,
          TfRecordIndex.indexFile(file),
          summary.records(),
          summary.recordBytes(),
          features,
          seconds);
    }
  }

  /// @param length the number of values in each record, or the word `varies`
  /// @param absence why the feature cannot be read without parsing the records; empty if it can
  private record Feature(String kind, long missing, Object length, String absence) {
    static Feature of(TfRecordIndex.Feature feature) {
      return new Feature(
          feature.kind().map(kind -> kind.name().toLowerCase(Locale.ROOT)).orElse(""),
          feature.missing(),
          feature.elements().isPresent() ? feature.elements().getAsLong() : "varies",
          feature.obstacle().map(TfRecordIndex.Feature.Obstacle::describe).orElse(""));
    }
  }

  /// @param seconds the duration of computing and writing the checksums
  public record Summed(Path file, Path sums, int tensors, double seconds) {}

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
      out.printf(
          Locale.ROOT,
          "%s: %,d records, %,d features, %.3f s%n",
          Table.line(each.file().toString()),
          each.records(),
          each.features().size(),
          each.seconds());
      each.features()
          .forEach((name, feature) -> {
            if (!feature.absence().isEmpty()) {
              out.printf(
                  "  %s must be parsed: %s%n",
                  Table.line("'" + name + "'"), Table.line(feature.absence()));
            }
          });
    }
  }

  @Override
  public Object json() {
    return Json.object().with("files", files).with("sums", sums);
  }
}
