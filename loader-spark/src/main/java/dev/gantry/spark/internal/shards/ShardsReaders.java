// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.spark.internal.columns.TensorColumn;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/// Makes readers, on executors.
///
/// @param columns to read, whose shapes are known
record ShardsReaders(List<TensorColumn> columns) implements PartitionReaderFactory {
  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new IllegalStateException("shards are read as columns");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new ShardsReader(
        (ShardsPartition) partition, columns.stream().map(TensorColumn::field).toList());
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }
}
