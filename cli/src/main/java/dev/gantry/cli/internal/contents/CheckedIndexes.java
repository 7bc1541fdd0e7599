// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.formats.internal.index.TfRecordIndex;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;

/// Which files have an index that can be used.
public record CheckedIndexes(List<Checked> files) implements Report {
  public record Checked(Location file, IndexState state) {}

  /// Those that are not usable are not for standard output.
  @Override
  public void print(PrintWriter out) {
    for (Checked each : files) {
      if (each.state() instanceof IndexState.Usable(TfRecordIndex.Summary summary)) {
        out.printf(
            Locale.ROOT,
            "%s: usable, %,d records, %,d features%n",
            Table.line(each.file().toString()),
            summary.records(),
            summary.features().size());
      }
    }
  }

  @Override
  public void write(JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeArrayFieldStart("files");
    for (Checked each : files) {
      json.writeStartObject();
      json.writeStringField("file", each.file().toString());
      json.writeBooleanField("usable", each.state().isUsable());
      json.writeStringField("reason", each.state().absence());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeEndObject();
  }
}
