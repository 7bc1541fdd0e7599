// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.spark.internal.columns.PlannedFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/// Reads TFRecord files. Several tasks read a large file that has an index; one task reads any other
/// file.
record TfRecordScan(List<Path> files, StructType columns, long partitionBytes)
    implements Scan, Batch {
  /// A range of records of one file.
  ///
  /// @param offset the offset of the first record in the file, in bytes
  /// @param first the number of the first record
  /// @param count how many records there are at most
  record Part(PlannedFile file, long offset, long first, long count) implements InputPartition {}

  @Override
  public StructType readSchema() {
    return columns;
  }

  @Override
  public String description() {
    return TfRecordSource.NAME + " " + files + " " + columns.catalogString();
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    List<InputPartition> partitions = new ArrayList<>();
    files.forEach(file -> plan(file, partitions));
    return partitions.toArray(InputPartition[]::new);
  }

  private void plan(Path file, List<InputPartition> partitions) {
    // The version is read before the index. If the file changes between the two, the tasks find
    // another version and fail.
    PlannedFile planned = PlannedFile.of(file);
    if (planned.bytes() > partitionBytes
        && TfRecordIndex.open(file, GantrySession.shared())
            instanceof TfRecordIndex.Found.Usable(TfRecordIndex index)) {
      try (index) {
        long records = index.summary().records();
        long parts = Math.clamp(Math.ceilDiv(index.fileBytes(), partitionBytes), 1, records);
        for (long part = 0; part < parts; part++) {
          long first = records * part / parts;
          TfRecordReader.Position from = index.position(first);
          partitions.add(
              new Part(planned, from.offset(), first, records * (part + 1) / parts - first));
        }
      }
    } else {
      partitions.add(new Part(planned, 0, 0, Long.MAX_VALUE));
    }
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    StructType wanted = columns;
    return partition -> new ExampleRows((Part) partition, wanted);
  }
}
