// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;

/// Makes readers, on executors.
record TfRecordReaders(StructType columns) implements PartitionReaderFactory {
  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return new ExampleRows((TfRecordPartition) partition, columns);
  }
}
