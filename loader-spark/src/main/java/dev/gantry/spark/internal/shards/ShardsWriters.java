// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;

/// Makes the writers of task attempts, on executors.
///
/// @param job distinguishes its parts from those of a job that was killed
/// @param samplesPerShard 0 for as many as fit a shard's bytes
record ShardsWriters(
    String folder, String job, List<TensorColumn> columns, long shardBytes, long samplesPerShard)
    implements DataWriterFactory {
  /// A task takes memory of two shards outside of the heap.
  private static final long SHARD_BYTES = 64L << 20;

  static ShardsWriters of(
      Path folder, String job, List<TensorColumn> columns, SourceOptions options) {
    return new ShardsWriters(
        folder.toString(),
        job,
        columns,
        options.number("shardBytes", SHARD_BYTES),
        options.text("samplesPerShard").isPresent() ? options.number("samplesPerShard", 1) : 0);
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partition, long task) {
    return new ShardsTaskWriter(this, job + "-" + partition + "-" + task);
  }
}
