// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.formats.tfrecord.Compression;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.types.StructType;

/// Makes the writers of task attempts, on executors.
///
/// @param job distinguishes its files from those of another
/// @param index whether each file gets an index
record TfRecordWriters(
    String folder, String job, StructType columns, Compression compression, boolean index)
    implements DataWriterFactory {
  @Override
  public DataWriter<InternalRow> createWriter(int partition, long task) {
    return new TfRecordTaskWriter(this, "part-" + job + "-" + partition + "-" + task + suffix());
  }

  String suffix() {
    return switch (compression) {
      case NONE -> ".tfrecord";
      case GZIP -> ".tfrecord.gz";
      case ZLIB -> ".tfrecord.zlib";
    };
  }
}
