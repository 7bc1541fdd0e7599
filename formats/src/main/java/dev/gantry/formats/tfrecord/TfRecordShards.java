// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.files.JointFiles.Part;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Writes a set of TFRecord files, named as TensorFlow names them: `train-00000-of-00010` to
/// `train-00009-of-00010`.
///
/// [#commit] gives the files their names when all of them are whole and on the disk. A list
/// beside them, `_gantry-files-train`, makes the files one set, and replaces an older set of the
/// same name. While the list is there and one of its files is missing, readers of the folder fail
/// with a one-line error. A folder may have sets of several names. The writer takes a quarter of
/// a MiB and a file descriptor for each shard. Several threads may write, each to shards of its
/// own; all other methods are for one thread. While a set is written, other writers of the same
/// set are refused.
public final class TfRecordShards implements AutoCloseable {
  private static final String NAME_END = "-";

  /// The most shards of a set.
  public static final int MAX_SHARDS = 1024;

  private final JointFiles output;
  private final List<Part> parts;
  private final List<TfRecordWriter> writers;

  private TfRecordShards(JointFiles output, List<Part> parts, List<TfRecordWriter> writers) {
    this.output = output;
    this.parts = parts;
    this.writers = writers;
  }

  /// Makes a writer with the process's shared session, as [#create(Session, Path, String, int,
  /// Compression)] does.
  public static TfRecordShards create(
      Path folder, String name, int shards, Compression compression) {
    return create(GantrySession.shared(), folder, name, shards, compression);
  }

  /// @param folder the folder of the files; it and its parents are made if they are missing
  /// @param name the start of the files' names, such as `train`
  /// @param shards how many files, up to [#MAX_SHARDS]
  /// @throws dev.gantry.core.TransferException if no file can be made in the folder
  /// @throws MisuseException if another writer of this set is at work, the folder has a set that
  ///     Spark wrote, or the name begins with a dot or has a line break
  public static TfRecordShards create(
      Session session, Path folder, String name, int shards, Compression compression) {
    MisuseException.requireGiven("folder", folder);
    MisuseException.requireGiven("name", name);
    MisuseException.requireGiven("compression", compression);
    MisuseException.requireRange("shards", shards, 1, MAX_SHARDS);
    GantrySession own = GantrySession.of(session);
    // The name may contain a folder, such as `a/train`.
    Path named = folder.resolve(name + NAME_END).toAbsolutePath();
    String last = String.valueOf(named.getFileName());
    String setName = last.substring(0, last.length() - NAME_END.length());
    JointFiles output = JointFiles.beginNamed(own, named.resolveSibling(""), setName);
    List<Part> parts =
        IntStream.range(0, shards)
            .mapToObj(i -> new Part("part-" + i, JointFiles.numbered(setName, i, shards)))
            .toList();
    List<TfRecordWriter> writers = new ArrayList<>(shards);
    TfRecordShards made = new TfRecordShards(output, parts, writers);
    return Cleanup.orUndo(
        () -> {
          for (Part part : parts) {
            Path file = output.unfinished().resolve(part.unfinished());
            writers.add(new TfRecordWriter(own, file, compression));
          }
          return made;
        },
        made::close);
  }

  /// Returns the paths of the files, in order.
  public static List<Path> files(Path folder, String name, int shards) {
    MisuseException.requireGiven("folder", folder);
    MisuseException.requireGiven("name", name);
    return IntStream.range(0, shards)
        .mapToObj(i -> folder.resolve(JointFiles.numbered(name, i, shards)))
        .toList();
  }

  /// Appends a record to a shard.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails; the writer can only be closed
  ///     then
  /// @throws MisuseException if there is no such shard, the record is too long, or the writer was
  ///     committed or closed
  public void write(int shard, MemorySegment record) {
    writer(shard).write(record);
  }

  /// How many records were written to a shard.
  ///
  /// @throws MisuseException if there is no such shard
  public long records(int shard) {
    return writer(shard).records();
  }

  private TfRecordWriter writer(int shard) {
    MisuseException.requireRange("shard", shard, 0, writers.size() - 1);
    return writers.get(shard);
  }

  /// Gives all files their names once all of them are on the disk. Closes the writer, even if
  /// this fails.
  ///
  /// @throws dev.gantry.core.TransferException if a file cannot be written. The old files are
  ///     unchanged then, unless the failure was in removing an old file, in a `rename`, or in the
  ///     folder's `fsync` after it
  public void commit() {
    try (output) {
      TfRecordWriter.commit(writers);
      List<Path> _ = output.finish(parts);
    }
  }

  /// Removes the written files, unless they were committed.
  @Override
  public void close() {
    try (output) {
      Cleanup.forEach(writers, TfRecordWriter::close);
    }
  }
}
