// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/// Makes readers, on executors.
///
/// @param columns to read
record ShardsReaders(List<Column> columns) implements PartitionReaderFactory {
  /// A field, as it goes to an executor.
  record Column(String name, DType dtype, List<Long> shape) implements Serializable {
    static Column of(Field field) {
      return new Column(
          field.name(),
          field.dtype(),
          List.copyOf(Arrays.stream(field.shape().toArray()).boxed().toList()));
    }

    Field field() {
      return new Field(
          name, dtype, TensorShape.of(shape.stream().mapToLong(Long::longValue).toArray()));
    }
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new IllegalStateException("shards are read as columns");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new ShardsReader(
        (ShardsPartition) partition, columns.stream().map(Column::field).toList());
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }
}
