// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.spark.internal.columns.FormatTable;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.output.FormatSource;
import dev.gantry.spark.internal.output.SetOutput;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/// The data source `tfrecord`: it reads and writes `tf.train.Example`s as a DataFrame with one
/// column for each feature.
public final class TfRecordSource extends FormatSource {
  static final String NAME = "tfrecord";

  /// How many records are read to derive the columns.
  private static final long INFERRED_RECORDS = 100;

  /// Called by Spark.
  public TfRecordSource() {
    super(NAME, List.of("compression", "index", "inferRecords", FormatTable.PARTITION));
  }

  @Override
  protected SetOutput<?> output(StructType schema, SourceOptions given) {
    return TfRecordOutput.of(schema, given);
  }

  @Override
  protected StructType schema(SourceOptions given) {
    return FeatureTypes.infer(TfRecordFiles.of(given.path()), inferredRecords(given));
  }

  private static long inferredRecords(SourceOptions given) {
    return given.number("inferRecords", INFERRED_RECORDS);
  }

  @Override
  protected void requireReadable(StructType schema) {
    FeatureTypes.requireFeatures(schema);
  }

  @Override
  protected Scan scan(StructType columns, SourceOptions given) {
    List<Path> files = TfRecordFiles.of(given.path());
    FeatureTypes.requireThere(files, columns, inferredRecords(given));
    return new TfRecordScan(files, columns, FormatTable.partitionBytes(given));
  }
}
