// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.parquet;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Writes Parquet files as raw tensor shards. Each row becomes a sample, and each column a field.
///
/// @param names the columns to write; all if empty
public record ParquetToShards(List<Path> files, List<String> names, Path output) {
  public WrittenFiles run(GantrySession session, ShardOptions options) throws IOException {
    Input.requireNoWeights(session, output);
    long start = System.nanoTime();
    List<Field> fields = List.of();
    ShardWriter writer = null;
    try (Progress bar = Progress.ofSteps("convert", files.size())) {
      for (int i = 0; i < files.size(); i++) {
        try (ParquetRows rows = new ParquetRows(files.get(i))) {
          List<ParquetColumn> columns = columns(rows);
          requireNames(rows, columns, fields);
          rows.select(columns.stream().map(ParquetColumn::path).toList());
          while (rows.next()) {
            List<Field> found =
                rows.guarded(() -> columns.stream().map(column -> column.field(rows)).toList());
            if (writer == null) {
              fields = found;
              writer = ShardWriter.create(session, output, fields, options);
            }
            append(rows, columns, fields, writer);
            bar.onProgress(i, files.size());
          }
        }
      }
      if (writer == null) {
        throw new MalformedFileException(files.getFirst(), 0, "no-rows", "there are no rows");
      }
      return WrittenFiles.of(output, writer.finish(), start);
    } finally {
      close(writer);
    }
  }

  private static void close(@Nullable ShardWriter writer) {
    if (writer != null) {
      writer.close();
    }
  }

  private List<ParquetColumn> columns(ParquetRows rows) {
    List<ParquetColumn> columns = new ArrayList<>();
    for (var schema : rows.schema()) {
      String path = ParquetRows.path(schema);
      if (names.isEmpty()
          || names.stream().anyMatch(name -> path.equals(name) || path.startsWith(name + "."))) {
        columns.add(ParquetColumn.of(rows, schema));
      }
    }
    for (String name : names) {
      if (columns.stream().noneMatch(each -> (each.path() + ".").startsWith(name + "."))) {
        throw new MisuseException(
            "--columns: %s has no column '%s'; its columns are %s"
                .formatted(
                    rows.file(), name, rows.schema().stream().map(ParquetColumn::name).toList()));
      }
    }
    return columns;
  }

  /// @param fields the fields of the previous files; empty for the first file
  private static void requireNames(
      ParquetRows rows, List<ParquetColumn> columns, List<Field> fields) {
    List<String> found = columns.stream().map(ParquetColumn::name).toList();
    for (ParquetColumn column : columns) {
      if (Collections.frequency(found, column.name()) > 1) {
        throw rows.malformed(
            "same-name", "two columns would become the field '%s'".formatted(column.name()));
      }
    }
    List<String> first = fields.stream().map(Field::name).toList();
    if (!first.isEmpty() && !found.equals(first)) {
      throw rows.malformed(
          "other-columns",
          "the columns are " + found + ", but those of the files before are " + first);
    }
  }

  private static void append(
      ParquetRows rows, List<ParquetColumn> columns, List<Field> fields, ShardWriter writer) {
    List<ParquetColumn.Values> values =
        rows.guarded(() -> columns.stream().map(column -> column.values(rows)).toList());
    Map<String, MemorySegment> sample = new HashMap<>();
    for (int row = 0; row < rows.count(); row++) {
      for (int i = 0; i < columns.size(); i++) {
        Field field = fields.get(i);
        if (columns.get(i).dtype() != field.dtype()
            || values.get(i).length(row) != field.sampleBytes()) {
          throw rows.malformed(
              "wrong-length",
              row,
              "'%s' is %s of %d bytes, but '%s' of the first row is %s of %d"
                  .formatted(
                      columns.get(i).name(),
                      columns.get(i).dtype(),
                      values.get(i).length(row),
                      field.name(),
                      field.dtype(),
                      field.sampleBytes()));
        }
        sample.put(field.name(), values.get(i).of(row));
      }
      writer.append(sample);
    }
  }
}
