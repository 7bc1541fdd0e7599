// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.JointShards;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.columns.TensorColumn;
import dev.gantry.spark.internal.output.FormatSource;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/// The data source `gantry-shards`: raw tensor shards as a DataFrame.
public final class ShardsSource extends FormatSource {
  /// For Spark.
  public ShardsSource() {
    super(ShardSet.FORMAT, ShardsOutput.class);
  }

  @Override
  protected void clear(Path folder) {
    JointShards.begin(GantrySession.shared(), folder, true).close();
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    ShardSet set = ShardSet.open(new SourceOptions(options).path());
    return new StructType(
        set.fields().stream().map(TensorColumn::toRead).toArray(StructField[]::new));
  }

  @Override
  public Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new ShardsTable(schema, new SourceOptions(properties));
  }
}
