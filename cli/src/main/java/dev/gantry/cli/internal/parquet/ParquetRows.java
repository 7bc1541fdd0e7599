// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.parquet;

import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.FileErrors;
import dev.hardwood.metadata.ColumnChunk;
import dev.hardwood.metadata.CompressionCodec;
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

/// The rows of a Parquet file, some at a time. Its row groups are read one after the other.
public final class ParquetRows implements AutoCloseable {
  /// The end of the names of Parquet files.
  public static final String SUFFIX = ".parquet";

  private static final int BATCH_ROWS = 256;
  private static final int MAX_CAUSES = 4;

  /// The reader's own log. Standard error belongs to the command, so it says there only what is wrong.
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
  private long rows;
  private int batch;
  private final ExecutorService caller =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("gantry-parquet").daemon().factory());
  private boolean stuck;

  /// @throws dev.gantry.core.TransferException if it cannot be opened
  /// @throws MalformedFileException if it is no Parquet file
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

  /// The columns of values; a list's or a struct's are named by its path.
  List<ColumnSchema> schema() {
    return reader.getFileSchema().getColumns();
  }

  /// @throws MalformedFileException if there is no column of texts of this name
  public void requireText(String path) {
    List<ColumnSchema> all = schema();
    boolean found =
        all.stream()
            .anyMatch(each ->
                each.fieldPath().toString().equals(path)
                    && each.maxRepetitionLevel() == 0
                    && each.type() == PhysicalType.BYTE_ARRAY);
    if (!found) {
      throw malformed(
          "no-text",
          "there is no column '%s' of texts, but %s"
              .formatted(path, all.stream().map(ColumnSchema::fieldPath).toList()));
    }
  }

  /// Begins to read.
  ///
  /// @param paths those of the columns
  public void select(List<String> paths) {
    columns =
        guarded(() -> {
          requireCodecs(paths);
          return reader
              .buildColumnReaders(ColumnProjection.columns(paths.toArray(String[]::new)))
              .batchSize(BATCH_ROWS)
              .build();
        });
  }

  /// Refuses codecs that the reader needs other libraries for: it would advise to add them.
  private void requireCodecs(List<String> paths) {
    for (RowGroup group : reader.getFileMetaData().rowGroups()) {
      for (ColumnChunk chunk : group.columns()) {
        String path = String.join(".", chunk.metaData().pathInSchema().elements());
        CompressionCodec codec = chunk.metaData().codec();
        if (paths.contains(path) && !CODECS.contains(codec)) {
          throw malformed(
              "unsupported-codec",
              "the column '%s' is compressed with %s; %s are read".formatted(path, codec, CODECS));
        }
      }
    }
  }

  /// Goes to the next rows.
  ///
  /// @return whether there are any
  public boolean next() {
    ColumnReaders selected = selected();
    rows += batch;
    boolean more = guarded(() -> inTime(selected::nextBatch));
    batch = more ? selected.getRecordCount() : 0;
    return more;
  }

  /// Calls the reader on a thread of its own: the library's threads never end where a page claims to be
  /// longer than its column.
  private boolean inTime(Callable<Boolean> call) {
    Future<Boolean> more = caller.submit(call);
    try {
      return more.get(MAX_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException _) {
      stuck = true;
      throw malformed("invalid-parquet", "nothing can be read within " + MAX_SECONDS + " seconds");
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      stuck = true;
      throw new TransferException("convert", "while it read " + file, new Failure.Cancelled());
    } catch (ExecutionException e) {
      Cleanup.rethrow(Objects.requireNonNull(e.getCause()), "the reader failed");
      throw new IllegalStateException(e);
    }
  }

  /// How many rows there are now.
  public int count() {
    return batch;
  }

  public ColumnReader column(String path) {
    return selected().getColumnReader(path);
  }

  private ColumnReaders selected() {
    if (columns == null) {
      throw new IllegalStateException("no column is selected");
    }
    return columns;
  }

  /// Calls the reader, which throws various exceptions where a file is damaged.
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

  /// Returns which step failed and why: the reader's message names the file and the step, its
  /// causes the reason. The file is left out, since the error names it already.
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

  /// @param row one of those that there are now
  public MalformedFileException malformed(String kind, int row, String detail) {
    return malformed(kind, "row " + (rows + row) + ": " + detail);
  }

  @Override
  public void close() throws IOException {
    caller.shutdownNow();
    if (stuck) {
      // The library waits for its threads when it is closed.
      return;
    }
    if (columns != null) {
      columns.close();
    }
    reader.close();
    input.close();
  }
}
