// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.output.OutputSource;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructField;
import org.jspecify.annotations.Nullable;

/// Writes a DataFrame as one set of TFRecord files, a file each partition that has rows, with indexes.
public final class TfRecordOutput extends OutputSource {
  @Override
  protected BatchWrite write(LogicalWriteInfo info, boolean mayReplace) {
    return new Job(info, mayReplace);
  }

  /// What a task tells the driver.
  ///
  /// @param file its name among unfinished work; null where the task had no rows
  record Written(@Nullable String file) implements WriterCommitMessage {}

  /// On the driver.
  private static final class Job implements BatchWrite {
    private final Path folder;
    private final TfRecordWriters writers;
    private final boolean mayReplace;
    private @Nullable JointFiles output;

    Job(LogicalWriteInfo info, boolean mayReplace) {
      SourceOptions options = new SourceOptions(info.options().asCaseSensitiveMap());
      this.mayReplace = mayReplace;
      folder = options.path().toAbsolutePath();
      Compression compression = options.choice("compression", Compression.class, Compression.NONE);
      for (StructField column : info.schema().fields()) {
        var _ = FeatureTypes.kind(column);
      }
      writers =
          new TfRecordWriters(
              folder.toString(),
              info.queryId(),
              info.schema(),
              compression,
              options.flag("index", true) && compression == Compression.NONE);
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      output = JointFiles.begin(GantrySession.shared(), folder, mayReplace);
      return writers;
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      List<String> files =
          Arrays.stream(messages)
              .map(message -> ((Written) message).file())
              .filter(Objects::nonNull)
              .map(Objects::requireNonNull)
              .toList();
      List<JointFiles.Part> parts = new ArrayList<>();
      for (int i = 0; i < files.size(); i++) {
        String file = files.get(i);
        parts.add(JointFiles.Part.of(file, i, files.size(), writers.job(), writers.suffix()));
        if (writers.index()) {
          parts.add(
              JointFiles.Part.of(
                  file + TfRecordIndex.SUFFIX,
                  i,
                  files.size(),
                  writers.job(),
                  writers.suffix() + TfRecordIndex.SUFFIX));
        }
      }
      try (JointFiles joint = Objects.requireNonNull(output)) {
        var _ = joint.finish(parts);
      }
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      if (output != null) {
        output.close();
      }
    }
  }
}
