// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.JointShards;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.spark.internal.columns.ColumnBuffer;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.jspecify.annotations.Nullable;

/// Writes one attempt's rows as a part of the set, from the first row on: it may tell the shapes.
final class ShardsTaskWriter implements DataWriter<InternalRow> {
  private static final int MOST_ROWS = 4096;
  private static final long MOST_BYTES = 1L << 20;

  private final ShardsWriters job;
  private final String part;
  private List<TensorColumn> columns;
  private final List<ColumnBuffer> buffers = new ArrayList<>();
  private @Nullable ShardWriter writer;
  private int most;
  private int rows;

  ShardsTaskWriter(ShardsWriters job, String part) {
    this.job = job;
    this.part = part;
    this.columns = job.columns();
  }

  @Override
  public void write(InternalRow row) {
    ShardWriter open = writer == null ? open(row) : writer;
    for (ColumnBuffer buffer : buffers) {
      buffer.put(row, rows);
    }
    rows++;
    if (rows == most) {
      flush(open);
    }
  }

  private ShardWriter open(InternalRow first) {
    List<TensorColumn> known = new ArrayList<>();
    for (int i = 0; i < columns.size(); i++) {
      TensorColumn column = columns.get(i);
      known.add(column.withElements(ColumnBuffer.elements(column, first, i)));
    }
    columns = List.copyOf(known);
    List<Field> fields = columns.stream().map(TensorColumn::field).toList();
    long bytes = Math.max(1, fields.stream().mapToLong(Field::sampleBytes).sum());
    most = Math.clamp(MOST_BYTES / bytes, 1, MOST_ROWS);
    for (int i = 0; i < columns.size(); i++) {
      buffers.add(new ColumnBuffer(columns.get(i), i, most));
    }
    ShardOptions options = ShardOptions.defaults().withWriters(1).withShardBytes(job.shardBytes());
    ShardWriter opened =
        JointShards.part(
            GantrySession.shared(),
            Path.of(job.folder()),
            part,
            fields,
            job.samplesPerShard() == 0
                ? options
                : options.withSamplesPerShard(job.samplesPerShard()));
    writer = opened;
    return opened;
  }

  private void flush(ShardWriter open) {
    if (rows == 0) {
      return;
    }
    Map<String, Source> values = new HashMap<>();
    for (ColumnBuffer buffer : buffers) {
      values.put(buffer.field().name(), new Memory.OnHost(buffer.values(rows)));
    }
    open.append(rows, values);
    rows = 0;
  }

  @Override
  public WriterCommitMessage commit() {
    ShardWriter open = writer;
    if (open == null) {
      return new ShardsOutput.Written(null, columns);
    }
    flush(open);
    ShardSet _ = open.finish();
    return new ShardsOutput.Written(part, columns);
  }

  /// Also after a commit that Spark has no use for; what is left then goes with the job's folder.
  @Override
  public void abort() {
    close();
  }

  @Override
  public void close() {
    if (writer != null) {
      writer.close();
    }
  }
}
