// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.JointShards;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.columns.TensorColumn;
import dev.gantry.spark.internal.output.SetOutput;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/// Writes a DataFrame as one set of raw tensor shards.
///
/// @param samplesPerShard the number of samples in a shard; 0 for as many as fit `shardBytes`
record ShardsOutput(
    String folder, List<TensorColumn> columns, long shardBytes, long samplesPerShard)
    implements SetOutput<ShardsOutput.Part> {
  /// A task takes twice this memory outside of the heap.
  private static final long SHARD_BYTES = 64L << 20;

  /// A finished part, as its task reports it to the driver.
  ///
  /// @param columns the columns with their shapes
  record Part(String name, List<TensorColumn> columns) implements Serializable {}

  /// @throws dev.gantry.core.MisuseException if a column cannot be stored as a field
  static ShardsOutput of(StructType schema, SourceOptions options) {
    options.requireShapesOf(schema);
    return new ShardsOutput(
        options.path().toAbsolutePath().toString(),
        Arrays.stream(schema.fields())
            .map(column -> TensorColumn.toWrite(column, options))
            .toList(),
        options.number("shardBytes", SHARD_BYTES),
        options.text("samplesPerShard").isPresent() ? options.number("samplesPerShard", 1) : 0);
  }

  @Override
  public Begun<Part> begin(boolean mayReplace) {
    JointShards set = JointShards.begin(GantrySession.shared(), Path.of(folder), mayReplace);
    return new Begun<>() {
      @Override
      public void finish(List<Part> parts) {
        List<TensorColumn> told = parts.isEmpty() ? columns : parts.getFirst().columns();
        var _ =
            set.finish(
                told.stream().map(TensorColumn::field).toList(),
                parts.stream().map(Part::name).toList(),
                ShardOptions.defaults());
      }

      @Override
      public void close() {
        set.close();
      }
    };
  }

  @Override
  public Part write(String name, Iterator<InternalRow> rows) {
    InternalRow row = rows.next();
    try (ShardsPart part = new ShardsPart(this, name, row)) {
      part.put(row);
      rows.forEachRemaining(part::put);
      return new Part(name, part.finish());
    }
  }
}
