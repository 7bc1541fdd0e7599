// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import java.io.IOException;
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
  public void write(JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeArrayFieldStart("files");
    for (Built each : files) {
      json.writeStartObject();
      json.writeStringField("file", each.file().toString());
      json.writeStringField("index", TfRecordIndex.indexFile(each.file()).toString());
      json.writeNumberField("records", each.summary().records());
      json.writeNumberField("bytes", each.summary().recordBytes());
      json.writeObjectFieldStart("features");
      for (TfRecordIndex.Feature feature : each.summary().features()) {
        write(feature, json);
      }
      json.writeEndObject();
      json.writeNumberField("seconds", each.seconds());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("sums");
    for (Summed each : sums) {
      json.writeStartObject();
      json.writeStringField("file", each.file().toString());
      json.writeStringField("sums", SafetensorsSums.sumsFile(each.file()).toString());
      json.writeNumberField("tensors", each.tensors());
      json.writeNumberField("seconds", each.seconds());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeEndObject();
  }

  private static void write(TfRecordIndex.Feature feature, JsonGenerator json) throws IOException {
    json.writeObjectFieldStart(feature.name());
    json.writeStringField(
        "kind", feature.kind().map(kind -> kind.name().toLowerCase(Locale.ROOT)).orElse(""));
    json.writeNumberField("missing", feature.missing());
    if (feature.elements().isPresent()) {
      json.writeNumberField("length", feature.elements().getAsLong());
    } else {
      json.writeStringField("length", "varies");
    }
    json.writeStringField(
        "absence", feature.obstacle().map(TfRecordIndex.Feature.Obstacle::describe).orElse(""));
    json.writeEndObject();
  }
}
