// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.spark.internal.columns.SourceOptions;
import dev.gantry.spark.internal.output.SetOutput;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/// Writes a DataFrame as one set of TFRecord files with indexes, one file for each partition that
/// has rows.
///
/// @param index whether each file gets an index
record TfRecordOutput(String folder, StructType columns, Compression compression, boolean index)
    implements SetOutput<String> {
  /// @throws dev.gantry.core.MisuseException if a column cannot be stored as a feature
  static TfRecordOutput of(StructType schema, SourceOptions options) {
    FeatureTypes.requireFeatures(schema);
    Compression compression = options.choice("compression", Compression.class, Compression.NONE);
    return new TfRecordOutput(
        options.path().toAbsolutePath().toString(),
        schema,
        compression,
        options.flag("index", true) && compression == Compression.NONE);
  }

  private String suffix() {
    return switch (compression) {
      case NONE -> ".tfrecord";
      case GZIP -> ".tfrecord.gz";
      case ZLIB -> ".tfrecord.zlib";
    };
  }

  @Override
  public Begun<String> begin(boolean mayReplace) {
    JointFiles.requireNone(Path.of(folder), ShardSet.FILE_NAME, "samples");
    JointFiles set = JointFiles.begin(GantrySession.shared(), Path.of(folder), mayReplace);
    return new Begun<>() {
      @Override
      public void finish(List<String> files) {
        String job = UUID.randomUUID().toString();
        List<JointFiles.Part> parts = new ArrayList<>();
        for (int i = 0; i < files.size(); i++) {
          for (String more : index ? List.of("", TfRecordIndex.SUFFIX) : List.of("")) {
            parts.add(
                JointFiles.Part.of(files.get(i) + more, i, files.size(), job, suffix() + more));
          }
        }
        var _ = set.finish(parts);
      }

      @Override
      public void close() {
        set.close();
      }
    };
  }

  @Override
  public String write(String part, Iterator<InternalRow> rows) {
    Path work = JointFiles.unfinished(Path.of(folder));
    if (!Files.isDirectory(work)) {
      // The check is needed, because the writer would create the missing folder.
      throw new TransferException(
          "open", work + ", since the job has ended", new Failure.Cancelled());
    }
    Path file = work.resolve("part-" + part + suffix());
    RowExamples examples = new RowExamples(columns);
    GantrySession session = GantrySession.shared();
    try (TfRecordWriter writer = TfRecordWriter.create(session, file, compression)) {
      rows.forEachRemaining(row -> writer.write(examples.record(row)));
      writer.commit();
    }
    if (index) {
      var _ = TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    }
    return String.valueOf(file.getFileName());
  }
}
