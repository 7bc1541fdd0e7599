// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.parquet;

import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.hardwood.metadata.ColumnChunk;
import dev.hardwood.metadata.CompressionCodec;
import dev.hardwood.metadata.FieldPath;
import dev.hardwood.metadata.PhysicalType;
import dev.hardwood.metadata.RowGroup;
import dev.hardwood.reader.ColumnReader;
import dev.hardwood.reader.ColumnReaders;
import dev.hardwood.reader.ParquetFileReader;
import dev.hardwood.schema.ColumnProjection;
import dev.hardwood.schema.ColumnSchema;
import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/// Reads the rows of a Parquet file in batches, one row group after the other. Not thread-safe.
public final class ParquetRows implements AutoCloseable {
  /// The suffix of Parquet files' names.
  public static final String SUFFIX = ".parquet";

  private static final int BATCH_ROWS = 256;
  private static final int MAX_CAUSES = 4;

  /// The log of the Parquet library. It writes only warnings, because standard error is for the
  /// command's errors.
  private static final Logger READER = Logger.getLogger("dev.hardwood");

  static {
    READER.setLevel(Level.WARNING);
  }

  private static final Set<CompressionCodec> CODECS =
      EnumSet.of(
          CompressionCodec.UNCOMPRESSED,
          CompressionCodec.GZIP,
          CompressionCodec.SNAPPY,
          CompressionCodec.ZSTD);

  private static final int MAX_SECONDS = Integer.getInteger("gantry.parquet.seconds", 120);

  private final Path file;
  private final MappedInput input;
  private final ParquetFileReader reader;
  private @Nullable ColumnReaders columns;

  /// The paths of all columns, if the library reads all of them because it cannot find the selected
  /// ones by their names; null if it can.
  private @Nullable List<String> all;

  private long rows;
  private int batch;
  private final ExecutorService caller =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("gantry-parquet").daemon().factory());
  private boolean stuck;

  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  /// @throws MalformedFileException if the file is not a Parquet file
  public ParquetRows(Path file) {
    this.file = file;
    try {
      input = new MappedInput(file);
    } catch (IOException e) {
      throw FileErrors.of("open", file.toString(), e);
    }
    try {
      reader = ParquetFileReader.open(input);
    } catch (IOException | RuntimeException e) {
      input.close();
      throw damaged(e);
    }
  }

  /// Returns the columns that hold values. A column within a list or struct has a path of several
  /// names.
  List<ColumnSchema> schema() {
    return reader.getFileSchema().getColumns();
  }

  /// Requires a column of texts.
  ///
  /// @throws MalformedFileException if no column with this path holds texts
  public void requireText(String path) {
    boolean found =
        schema().stream()
            .anyMatch(each ->
                path(each).equals(path)
                    && each.maxRepetitionLevel() == 0
                    && each.type() == PhysicalType.BYTE_ARRAY);
    if (!found) {
      throw malformed(
          "no-text", "no column '%s' holds texts; the columns are %s".formatted(path, paths()));
    }
  }

  /// Begins to read some columns.
  ///
  /// @param paths the columns' paths
  /// @throws MalformedFileException if a column's codec is not supported
  public void select(List<String> paths) {
    columns =
        guarded(() -> {
          all = paths.stream().allMatch(this::isFoundByName) ? null : paths();
          requireCodecs(all == null ? paths : all);
          ColumnProjection projection =
              all == null
                  ? ColumnProjection.columns(paths.toArray(String[]::new))
                  : ColumnProjection.all();
          return reader.buildColumnReaders(projection).batchSize(BATCH_ROWS).build();
        });
  }

  private List<String> paths() {
    return schema().stream().map(ParquetRows::path).toList();
  }

  static String path(ColumnSchema schema) {
    return path(schema.fieldPath());
  }

  private static String path(FieldPath names) {
    return String.join(".", names.elements());
  }

  /// Whether the library finds a column by its path. It takes each dot for the border of two
  /// names, and a path without dots for the last name of any column.
  private boolean isFoundByName(String path) {
    return schema().stream()
            .filter(each -> path(each).equals(path))
            .allMatch(each -> each.fieldPath().elements().stream().noneMatch(n -> n.contains(".")))
        && (path.contains(".")
            || schema().stream().filter(each -> each.name().equals(path)).count() == 1);
  }

  /// Refuses codecs for which the library needs further jars. The library's own error would
  /// advise users to add these jars.
  private void requireCodecs(List<String> paths) {
    for (RowGroup group : reader.getFileMetaData().rowGroups()) {
      for (ColumnChunk chunk : group.columns()) {
        String path = path(chunk.metaData().pathInSchema());
        CompressionCodec codec = chunk.metaData().codec();
        if (paths.contains(path) && !CODECS.contains(codec)) {
          throw malformed(
              "unsupported-codec",
              "the column '%s' is compressed with %s; supported are %s"
                  .formatted(path, codec, CODECS));
        }
      }
    }
  }

  /// Reads the next batch of rows.
  ///
  /// @return whether the batch has rows; false after the last row
  public boolean next() {
    ColumnReaders selected = selected();
    rows += batch;
    boolean more = guarded(() -> inTime(selected::nextBatch));
    batch = more ? selected.getRecordCount() : 0;
    return more;
  }

  /// Calls the library on a separate thread, with a time limit: the call never returns if a
  /// page's header claims more bytes than its column has.
  private boolean inTime(Callable<Boolean> call) {
    Future<Boolean> more = caller.submit(call);
    try {
      return more.get(MAX_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException _) {
      stuck = true;
      throw malformed(
          "invalid-parquet", "the reader gave no rows within " + MAX_SECONDS + " seconds");
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      stuck = true;
      throw WorkerThreads.interrupted("convert", String.valueOf(file));
    } catch (ExecutionException e) {
      Cleanup.rethrow(Objects.requireNonNull(e.getCause()), "the reader failed");
      throw new IllegalStateException(e);
    }
  }

  /// The number of rows in the current batch.
  public int count() {
    return batch;
  }

  public ColumnReader column(String path) {
    return all == null
        ? selected().getColumnReader(path)
        : selected().getColumnReader(all.indexOf(path));
  }

  private ColumnReaders selected() {
    if (columns == null) {
      throw new IllegalStateException("no column is selected");
    }
    return columns;
  }

  /// Calls the library, and reports its exceptions as a damaged file. The library throws
  /// exceptions of several types for damaged files.
  public <T> T guarded(Supplier<T> call) {
    try {
      return call.get();
    } catch (RuntimeException e) {
      throw e instanceof GantryException known ? known : damaged(e);
    }
  }

  private MalformedFileException damaged(Exception e) {
    MalformedFileException damage = malformed("invalid-parquet", reasons(e));
    damage.initCause(e);
    return damage;
  }

  Path file() {
    return file;
  }

  /// Returns which step failed and why. The message of the library's exception names the file and
  /// the step, and the messages of its causes give the reason. The file's name is left out,
  /// because the error names the file already.
  private String reasons(Throwable e) {
    String reasons = String.valueOf(e.getMessage()).replace("[" + file + "] ", "");
    Throwable cause = e.getCause();
    for (int i = 0; cause != null && i < MAX_CAUSES; i++) {
      String reason = String.valueOf(cause.getMessage());
      if (!reasons.contains(reason)) {
        reasons += ": " + reason.lines().findFirst().orElse("");
      }
      cause = cause.getCause();
    }
    return reasons;
  }

  MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(file, 0, kind, detail);
  }

  /// @param row the row's index in the current batch
  public MalformedFileException malformed(String kind, int row, String detail) {
    return malformed(kind, "row " + (rows + row) + ": " + detail);
  }

  @Override
  public void close() throws IOException {
    caller.shutdownNow();
    if (stuck) {
      // The library's reader would wait for the stuck thread when it is closed.
      return;
    }
    if (columns != null) {
      columns.close();
    }
    reader.close();
    input.close();
  }
}
