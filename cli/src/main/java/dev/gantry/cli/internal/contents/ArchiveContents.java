// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.webdataset.SampleReader;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Reports the contents of WebDataset tar archives: the number of samples, and their fields.
public final class ArchiveContents implements Report {
  /// The most fields that are reported. Each sample may name its fields differently, so their
  /// number needs a limit.
  private static final int MAX_FIELDS = SampleReader.MAX_FIELDS;

  /// @param compression `none` or `gzip`
  private record Archive(Location file, String compression, long samples, long bytes) {}

  private final List<Archive> files = new ArrayList<>();
  private final Map<String, FieldSizes> fields = new LinkedHashMap<>();

  /// The number of samples that have a field, and the sizes of the field's values in bytes.
  private static final class FieldSizes {
    long samples;
    long bytes;
    long least = Long.MAX_VALUE;
    long most;

    void add(long length) {
      samples++;
      bytes += length;
      least = Math.min(least, length);
      most = Math.max(most, length);
    }
  }

  private ArchiveContents() {}

  /// Reads the headers of all members.
  public static ArchiveContents of(GantrySession session, List<Location> files) {
    ArchiveContents contents = new ArchiveContents();
    try (Progress bar = Progress.ofRecords("inspect", files)) {
      for (Location file : files) {
        contents.add(session, file, bar);
      }
    }
    return contents;
  }

  private void add(GantrySession session, Location file, Progress bar) {
    try (SampleReader reader = SampleReader.open(session, file)) {
      long samples = 0;
      long bytes = 0;
      boolean isCompressed = reader.tar().isCompressed();
      for (var next = reader.next(); next.isPresent(); next = reader.next()) {
        SampleReader.Value value = next.get();
        samples = value.sample() + 1;
        bytes += value.member().length();
        if (fields.size() < MAX_FIELDS || fields.containsKey(value.field())) {
          fields.computeIfAbsent(value.field(), _ -> new FieldSizes()).add(value.member().length());
        }
        bar.at(file, value.member().offset(), isCompressed);
      }
      files.add(new Archive(file, isCompressed ? "gzip" : "none", samples, bytes));
    }
  }

  private long samples() {
    return files.stream().mapToLong(Archive::samples).sum();
  }

  private long bytes() {
    return files.stream().mapToLong(Archive::bytes).sum();
  }

  @Override
  public Object json() {
    return Json.object()
        .with("format", "webdataset")
        .with("samples", samples())
        .with("bytes", bytes())
        .with(
            "fields",
            Json.byName(
                fields.entrySet(),
                Map.Entry::getKey,
                field ->
                    Json.object()
                        .with("samples", field.getValue().samples)
                        .with("bytes", field.getValue().bytes)
                        .with("leastBytes", field.getValue().least)
                        .with("mostBytes", field.getValue().most)))
        .with("files", files);
  }

  @Override
  public void print(PrintWriter out) {
    out.printf(
        "WebDataset, %,d file(s), %,d samples, %,d bytes%n", files.size(), samples(), bytes());
    if (files.size() > 1 || !files.getFirst().compression().equals("none")) {
      for (Archive file : files) {
        out.printf(
            "  %s: compression %s, %,d samples, %,d bytes%n",
            Table.line(file.file().fileName()), file.compression(), file.samples(), file.bytes());
      }
    }
    Table table = new Table("field", "samples", "bytes", "least", "most");
    fields.forEach((name, sizes) ->
        table.row(
            name,
            Long.toString(sizes.samples),
            Long.toString(sizes.bytes),
            Long.toString(sizes.least),
            Long.toString(sizes.most)));
    table.print(out);
  }
}
