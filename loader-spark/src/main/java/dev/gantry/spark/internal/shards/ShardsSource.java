// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.formats.shards.ShardSet;
import dev.gantry.spark.internal.columns.FormatTable;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.columns.TensorColumn;
import dev.gantry.spark.internal.output.FormatSource;
import dev.gantry.spark.internal.output.SetOutput;
import java.util.List;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/// The data source `gantry-shards`: it reads and writes raw tensor shards as a DataFrame.
public final class ShardsSource extends FormatSource {
  /// Called by Spark.
  public ShardsSource() {
    super(
        ShardSet.FORMAT,
        List.of(
            SourceOptions.SHAPE_OF_COLUMN, "shardBytes", "samplesPerShard", FormatTable.PARTITION));
  }

  @Override
  protected SetOutput<?> output(StructType schema, SourceOptions given) {
    return ShardsOutput.of(schema, given);
  }

  @Override
  protected StructType schema(SourceOptions given) {
    ShardSet set = ShardSet.open(given.path());
    return new StructType(
        set.fields().stream().map(TensorColumn::toRead).toArray(StructField[]::new));
  }

  @Override
  protected Scan scan(StructType columns, SourceOptions given) {
    return new ShardsScan(ShardSet.open(given.path()), columns, FormatTable.partitionBytes(given));
  }
}
