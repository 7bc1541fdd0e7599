// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.JointShards;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.columns.TensorColumn;
import dev.gantry.spark.internal.output.OutputSource;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.jspecify.annotations.Nullable;

/// Writes a DataFrame as one set of raw tensor shards.
public final class ShardsOutput extends OutputSource {
  @Override
  protected BatchWrite write(LogicalWriteInfo info, boolean mayReplace) {
    return new Job(info, mayReplace);
  }

  /// What a task tells the driver.
  ///
  /// @param part its name; null where the task had no rows
  /// @param columns with their shapes
  record Written(@Nullable String part, List<TensorColumn> columns)
      implements WriterCommitMessage {}

  /// On the driver.
  private static final class Job implements BatchWrite {
    private final Path folder;
    private final List<TensorColumn> columns;
    private final ShardsWriters writers;
    private final boolean mayReplace;
    private @Nullable JointShards output;

    Job(LogicalWriteInfo info, boolean mayReplace) {
      SourceOptions options = new SourceOptions(info.options().asCaseSensitiveMap());
      this.mayReplace = mayReplace;
      folder = options.path().toAbsolutePath();
      options.requireShapesOf(info.schema());
      columns =
          List.copyOf(
              Arrays.stream(info.schema().fields())
                  .map(column -> TensorColumn.toWrite(column, options))
                  .toList());
      writers = ShardsWriters.of(folder, info.queryId(), columns, options);
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      output = JointShards.begin(GantrySession.shared(), folder, mayReplace);
      return writers;
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      List<String> parts = new ArrayList<>();
      List<TensorColumn> told = columns;
      for (WriterCommitMessage message : messages) {
        Written written = (Written) message;
        if (written.part() != null) {
          told = parts.isEmpty() ? written.columns() : told;
          parts.add(written.part());
        }
      }
      try (JointShards joint = output()) {
        joint.finish(
            told.stream().map(TensorColumn::field).toList(), parts, ShardOptions.defaults());
      }
    }

    private JointShards output() {
      JointShards begun = output;
      if (begun == null) {
        throw new IllegalStateException("Spark commits what it has not begun");
      }
      return begun;
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      if (output != null) {
        output.close();
      }
    }
  }
}
