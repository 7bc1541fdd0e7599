// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.output.FormatSource;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/// The data source `tfrecord`: `tf.train.Example`s as a DataFrame, a feature a column.
public final class TfRecordSource extends FormatSource {
  static final String NAME = "tfrecord";

  /// How many records are looked at for their features.
  private static final long INFERRED_RECORDS = 100;

  /// For Spark.
  public TfRecordSource() {
    super(NAME, TfRecordOutput.class);
  }

  @Override
  protected void clear(Path folder) {
    JointFiles.begin(GantrySession.shared(), folder, true).close();
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap given) {
    SourceOptions options = new SourceOptions(given);
    return FeatureTypes.infer(
        TfRecordFiles.of(options.path()), options.number("inferRecords", INFERRED_RECORDS));
  }

  @Override
  public Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new TfRecordTable(schema, new SourceOptions(properties));
  }
}
