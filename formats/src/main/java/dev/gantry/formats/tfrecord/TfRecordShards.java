// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/// Writes several TFRecord files that belong together, named as TensorFlow's are:
/// `train-00000-of-00010` to `train-00009-of-00010`.
///
/// They get their names by [#commit], when all of them are whole and on the disk. Takes a quarter
/// of a MiB and a file descriptor a shard. Several threads may write, each to shards of its own;
/// the rest is for one thread.
public final class TfRecordShards implements AutoCloseable {
  /// The most shards that are written at once.
  public static final int MOST_SHARDS = 1024;

  private final List<TfRecordWriter> writers;

  private TfRecordShards(List<TfRecordWriter> writers) {
    this.writers = writers;
  }

  /// As [#create(Session, Path, String, int, Compression)], with the process's shared session.
  public static TfRecordShards create(
      Path folder, String name, int shards, Compression compression) {
    return create(GantrySession.shared(), folder, name, shards, compression);
  }

  /// @param folder which is made where it is missing, and those above it
  /// @param name what the files' names begin with, such as `train`
  /// @param shards how many files, up to [#MOST_SHARDS]
  /// @throws dev.gantry.core.TransferException if no file can be made in the folder
  public static TfRecordShards create(
      Session session, Path folder, String name, int shards, Compression compression) {
    MisuseException.requireRange("shards", shards, 1, MOST_SHARDS);
    List<TfRecordWriter> writers = new ArrayList<>(shards);
    boolean complete = false;
    try {
      for (Path file : files(folder, name, shards)) {
        writers.add(new TfRecordWriter(GantrySession.of(session), file, compression));
      }
      complete = true;
      return new TfRecordShards(writers);
    } finally {
      if (!complete) {
        writers.reversed().forEach(TfRecordWriter::close);
      }
    }
  }

  /// The files' names, in order.
  public static List<Path> files(Path folder, String name, int shards) {
    List<Path> files = new ArrayList<>(shards);
    for (int i = 0; i < shards; i++) {
      files.add(folder.resolve(String.format(Locale.ROOT, "%s-%05d-of-%05d", name, i, shards)));
    }
    return files;
  }

  /// Appends a record to a shard.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails; there is no going on then
  /// @throws MisuseException if the record is too long, or the writer is done
  public void write(int shard, MemorySegment record) {
    writers.get(Objects.checkIndex(shard, writers.size())).write(record);
  }

  /// How many records were written to a shard.
  public long records(int shard) {
    return writers.get(shard).records();
  }

  /// Gives all files their names once all of them are on the disk, and closes the writer, also
  /// where that fails.
  ///
  /// @throws dev.gantry.core.TransferException if one cannot be written; old files have stayed
  ///     unless the failure is of a `rename` or of a folder's synchronisation after it
  public void commit() {
    TfRecordWriter.commit(writers);
  }

  /// Removes what was written, unless it was committed.
  @Override
  public void close() {
    // The first one has made the folder, and goes when nothing is in it any more.
    Cleanup.runAll(writers.reversed().stream().<Runnable>map(writer -> writer::close).toList());
  }
}
