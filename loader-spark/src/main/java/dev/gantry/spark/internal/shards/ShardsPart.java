// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.JointShards;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.spark.internal.columns.ColumnBuffer;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;

/// Writes a part of a set row by row.
final class ShardsPart implements AutoCloseable {
  private static final int MAX_ROWS = 4096;
  private static final long MAX_BYTES = 1L << 20;

  private final List<TensorColumn> columns = new ArrayList<>();
  private final List<ColumnBuffer> buffers = new ArrayList<>();
  private final ShardWriter writer;
  private final int most;
  private int rows;

  /// @param first the first row, which tells the shapes that are not known
  ShardsPart(ShardsOutput job, String name, InternalRow first) {
    for (TensorColumn column : job.columns()) {
      columns.add(column.withElements(ColumnBuffer.elements(column, first, columns.size())));
    }
    List<Field> fields = columns.stream().map(TensorColumn::field).toList();
    long bytes = Math.max(1, fields.stream().mapToLong(Field::sampleBytes).sum());
    most = Math.clamp(MAX_BYTES / bytes, 1, MAX_ROWS);
    for (TensorColumn column : columns) {
      buffers.add(new ColumnBuffer(column, buffers.size(), most));
    }
    ShardOptions options = ShardOptions.defaults().withWriters(1).withShardBytes(job.shardBytes());
    writer =
        JointShards.part(
            GantrySession.shared(),
            Path.of(job.folder()),
            name,
            fields,
            job.samplesPerShard() == 0
                ? options
                : options.withSamplesPerShard(job.samplesPerShard()));
  }

  void put(InternalRow row) {
    for (ColumnBuffer buffer : buffers) {
      buffer.put(row, rows);
    }
    rows++;
    if (rows == most) {
      flush();
    }
  }

  private void flush() {
    if (rows > 0) {
      Map<String, Source> values = new HashMap<>();
      for (ColumnBuffer buffer : buffers) {
        values.put(buffer.field().name(), new Memory.OnHost(buffer.values(rows)));
      }
      writer.append(rows, values);
      rows = 0;
    }
  }

  /// @return the columns with their shapes
  List<TensorColumn> finish() {
    flush();
    var _ = writer.finish();
    return List.copyOf(columns);
  }

  /// The job removes the files of a failed task with its folder of unfinished work.
  @Override
  public void close() {
    writer.close();
  }
}
