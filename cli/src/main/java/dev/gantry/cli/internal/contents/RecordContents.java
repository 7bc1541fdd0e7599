// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.input.RecordFiles;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.Schema;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/// Reports the contents of TFRecord files: the number of records, and the features of the first
/// records.
///
/// @param features the features; empty if the records are not examples
/// @param absence why there are no features; empty if there are some
public record RecordContents(List<RecordFile> files, List<FeatureSpec> features, String absence)
    implements Report {
  /// The kinds of errors with which [Schema] refuses files whose records are intact, but are not
  /// examples that it can describe.
  private static final Set<String> NO_SCHEMA = Set.of("no-records", "invalid-proto", "wrong-kind");

  /// @param bytes the size of the records' data
  record RecordFile(Location file, String compression, long records, long bytes, IndexState index) {
    /// Takes the counts from the index if it is usable; otherwise reads and checks all records.
    public static RecordFile of(GantrySession session, Location file, Progress bar) {
      try (TfRecordReader reader = RecordFiles.open(session, file)) {
        IndexState index =
            reader.compression() == Compression.NONE
                ? IndexState.of(session, file)
                : IndexState.unusable(
                    file + " is compressed, so its records cannot be reached by offset");
        long records = 0;
        long bytes = 0;
        if (index.summary().isPresent()) {
          records = index.summary().get().records();
          bytes = index.summary().get().recordBytes();
        } else {
          while (reader.next()) {
            bar.at(reader);
          }
          records = reader.statistics().records();
          bytes = reader.statistics().bytes();
        }
        return new RecordFile(file, name(reader.compression()), records, bytes, index);
      }
    }
  }

  public static RecordContents of(GantrySession session, List<Location> paths) {
    List<RecordFile> files = new ArrayList<>();
    try (Progress bar = Progress.ofRecords("inspect", paths)) {
      for (Location path : paths) {
        files.add(RecordFile.of(session, path, bar));
      }
    }
    try {
      List<FeatureSpec> features =
          Schema.infer(session, paths, RecordFiles.OPTIONS, Schema.USUAL_RECORDS);
      return new RecordContents(files, features, "");
    } catch (MalformedFileException e) {
      if (NO_SCHEMA.contains(e.kind())) {
        return new RecordContents(files, List.of(), e.getMessage());
      }
      throw e;
    }
  }

  private long records() {
    return files.stream().mapToLong(RecordFile::records).sum();
  }

  private long bytes() {
    return files.stream().mapToLong(RecordFile::bytes).sum();
  }

  /// The compressions of all files; several are joined, as in `none, gzip`.
  private String compression() {
    return files.stream().map(RecordFile::compression).distinct().collect(Collectors.joining(", "));
  }

  private static String name(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }

  @Override
  public Object json() {
    // The member `index` describes the first file without a usable index, so that one such file
    // among many is noticed.
    RecordFile index =
        files.stream()
            .filter(file -> !file.index().isUsable())
            .findFirst()
            .orElseGet(files::getFirst);
    return Json.object()
        .with("format", "tfrecord")
        .with("compression", compression())
        .with("records", records())
        .with("bytes", bytes())
        .with("features", Json.byName(features, FeatureSpec::name, RecordContents::json))
        .with("featuresAbsence", absence)
        .with("index", index.index().json())
        .with("files", files);
  }

  private static Object json(FeatureSpec feature) {
    return Json.object()
        .with("kind", name(feature.kind()))
        .with("dtype", feature.dtype().name())
        .with("length", varies(feature) ? "varies" : elements(feature));
  }

  private static boolean varies(FeatureSpec feature) {
    return switch (feature) {
      case FeatureSpec.FixedLength _, FeatureSpec.FixedSteps _, FeatureSpec.Decoded _ -> false;
      case FeatureSpec.VariableLength _, FeatureSpec.VariableSteps _ -> true;
    };
  }

  /// The most elements that the feature has in one record.
  private static long elements(FeatureSpec feature) {
    return feature.field().shape().elements().orElseThrow();
  }

  @Override
  public void print(PrintWriter out) {
    out.printf(
        "TFRecord, %,d file(s), compression %s, %,d records, %,d bytes%n",
        files.size(), compression(), records(), bytes());
    for (RecordFile file : files) {
      if (files.size() > 1) {
        out.printf(
            "  %s: compression %s, %,d records, %,d bytes%n",
            Table.line(file.file().fileName()), file.compression(), file.records(), file.bytes());
      }
      out.println(
          "  index: "
              + (file.index().isUsable()
                  ? "usable"
                  : "not usable: " + Table.line(file.index().absence())));
    }
    if (!absence.isEmpty()) {
      out.println("  features: none: " + Table.line(absence));
      return;
    }
    Table table = new Table("feature", "kind", "dtype", "length");
    for (FeatureSpec feature : features) {
      table.row(
          feature.name(),
          name(feature.kind()),
          feature.dtype().name(),
          varies(feature) ? "varies, up to " + elements(feature) : elements(feature) + "");
    }
    table.print(out);
  }
}
