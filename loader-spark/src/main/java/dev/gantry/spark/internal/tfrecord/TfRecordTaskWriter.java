// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.jspecify.annotations.Nullable;

/// Writes one attempt's rows as a file of unfinished work.
final class TfRecordTaskWriter implements DataWriter<InternalRow> {
  private final TfRecordWriters job;
  private final Path file;
  private final RowExamples examples;
  private @Nullable TfRecordWriter writer;

  TfRecordTaskWriter(TfRecordWriters job, String name) {
    this.job = job;
    file = JointFiles.unfinished(Path.of(job.folder())).resolve(name);
    examples = new RowExamples(job.columns());
  }

  @Override
  public void write(InternalRow row) {
    TfRecordWriter open = writer == null ? open() : writer;
    open.write(examples.record(row));
  }

  /// The writer would make the folder where the job has ended meanwhile.
  private TfRecordWriter open() {
    Path folder = file.resolveSibling("");
    if (!Files.isDirectory(folder)) {
      throw new TransferException(
          "open", folder + ", since the job has ended", new Failure.Cancelled());
    }
    TfRecordWriter opened = TfRecordWriter.create(GantrySession.shared(), file, job.compression());
    writer = opened;
    return opened;
  }

  @Override
  public WriterCommitMessage commit() {
    TfRecordWriter open = writer;
    if (open == null) {
      return new TfRecordOutput.Written(null);
    }
    open.commit();
    if (job.index()) {
      var _ = TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), GantrySession.shared());
    }
    return new TfRecordOutput.Written(String.valueOf(file.getFileName()));
  }

  /// What was committed goes with the job's folder.
  @Override
  public void abort() {
    close();
  }

  @Override
  public void close() {
    if (writer != null) {
      writer.close();
    }
  }
}
