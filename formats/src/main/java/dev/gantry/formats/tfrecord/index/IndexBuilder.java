package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.nio.file.Path;

/// Reads a file once, from beginning to end, and writes its index.
final class IndexBuilder {
  /// Between two reports of progress: some ten a second where the file comes from memory.
  private static final long REPORT_BYTES = 64L << 20;

  private final Path file;
  private final IndexOptions options;
  private final GantrySession session;

  IndexBuilder(Path file, IndexOptions options, GantrySession session) {
    this.file = file;
    this.options = options;
    this.session = session;
  }

  IndexSummary build() {
    FileStamp stamp = FileStamp.of(file);
    try (IndexPass pass = new IndexPass(options.features())) {
      read(pass, stamp);
      String change = FileStamp.of(file).changeSince(stamp);
      if (!change.isEmpty()) {
        throw new MalformedFileException(
            file, 0, "changed-meanwhile", "somebody writes the file: " + change);
      }
      NewSafetensors index = pass.checkpoint(TfRecordIndex.indexFile(file), stamp);
      // Not by the checkpoint's own write: an index of safetensors in this folder is none of ours.
      session.write(
          index.files(),
          WriteOptions.defaults().withChecksums(false).withCancellation(options.cancellation()));
      return pass.summary(stamp);
    }
  }

  private void read(IndexPass pass, FileStamp stamp) {
    TfRecordOptions all =
        TfRecordOptions.defaults().withMostRecordBytes(TfRecordOptions.MOST_RECORD_BYTES);
    try (TfRecordReader reader = TfRecordReader.open(session, file, all)) {
      if (reader.compression() != Compression.NONE) {
        throw new MisuseException(
            file
                + " is compressed ("
                + reader.compression()
                + "): its records cannot be reached by offset, so it has no index; stream it, or"
                + " write it without compression");
      }
      long report = REPORT_BYTES;
      while (reader.next()) {
        requireWanted();
        pass.add(reader);
        if (reader.offset() >= report) {
          options.progress().onProgress(reader.offset(), stamp.size());
          report = reader.offset() + REPORT_BYTES;
        }
      }
      options.progress().onProgress(stamp.size(), stamp.size());
    }
  }

  private void requireWanted() {
    if (options.cancellation().isCancelled()) {
      throw new TransferException("index", file.toString(), new Failure.Cancelled());
    }
  }
}
