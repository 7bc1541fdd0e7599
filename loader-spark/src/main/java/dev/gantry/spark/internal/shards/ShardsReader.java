// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.Field;
import dev.gantry.spark.internal.columns.PlannedFile;
import dev.gantry.spark.internal.columns.TensorColumn;
import dev.gantry.spark.internal.columns.TensorVector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/// Reads some samples of a shard, a few thousand at a time, into memory that it reuses.
final class ShardsReader implements PartitionReader<ColumnarBatch> {
  /// A range of samples of one shard.
  ///
  /// @param offsets the offset of each column in the file, in bytes
  /// @param first the number of the first sample
  /// @param count how many samples there are
  record Part(PlannedFile file, List<Long> offsets, long first, long count)
      implements InputPartition {}

  /// Makes readers, on executors.
  ///
  /// @param columns the columns to read, whose shapes are known
  record Factory(List<TensorColumn> columns) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new IllegalStateException("shards are read as columns");
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new ShardsReader((Part) partition, columns.stream().map(TensorColumn::field).toList());
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }
  }

  /// The most rows of a batch, the same as in Spark's own readers.
  private static final int MAX_ROWS = 4096;

  private static final long MAX_BYTES = 8L << 20;

  private final Part partition;
  private final SourceFile file;
  private final List<Field> fields;
  private final int step;

  /// The arena is shared, since PySpark reads rows on another thread.
  private final Arena arena = Arena.ofShared();

  private final List<MemorySegment> memory = new ArrayList<>();
  private final ColumnarBatch batch;
  private long done;

  ShardsReader(Part partition, List<Field> fields) {
    this.partition = partition;
    this.fields = fields;
    file =
        partition
            .file()
            .open(path -> GantrySession.shared().openFile(Location.of(path)), SourceFile::close);
    long bytes = Math.max(1, fields.stream().mapToLong(Field::sampleBytes).sum());
    step = (int) Math.min(Math.clamp(MAX_BYTES / bytes, 1, MAX_ROWS), partition.count());
    batch = Cleanup.orUndo(this::allocate, this::close);
  }

  private ColumnarBatch allocate() {
    List<ColumnVector> columns = new ArrayList<>();
    for (Field field : fields) {
      MemorySegment values = arena.allocate(step * field.sampleBytes(), Long.BYTES);
      memory.add(values);
      columns.add(new TensorVector(field, values));
    }
    return new ColumnarBatch(columns.toArray(ColumnVector[]::new));
  }

  @Override
  public boolean next() {
    int rows = (int) Math.min(step, partition.count() - done);
    if (rows == 0) {
      return false;
    }
    for (int i = 0; i < fields.size(); i++) {
      long each = fields.get(i).sampleBytes();
      if (each > 0) {
        long offset = partition.offsets().get(i) + (partition.first() + done) * each;
        boolean _ = file.read(memory.get(i).asSlice(0, rows * each), offset, rows * each, false);
      }
    }
    done += rows;
    batch.setNumRows(rows);
    return true;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public void close() {
    file.close();
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
