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
import java.util.Objects;
import java.util.stream.IntStream;

/// Writes several TFRecord files that belong together, named as TensorFlow's are:
/// `train-00000-of-00010` to `train-00009-of-00010`.
///
/// They get their names by [#commit], when all of them are whole and on the disk. A list beside them,
/// `_gantry-files-train`, makes them one set, and takes the place of an older set of the name: readers of the
/// folder are refused in one line while it is there and not all of its files are. A folder may have sets
/// of several names. Takes a quarter of a MiB and a file descriptor a shard. Several threads may write,
/// each to shards of its own; the rest is for one thread. While a set is written, other writers of it
/// are refused.
public final class TfRecordShards implements AutoCloseable {
  private static final String NAME_END = "-";

  /// The most shards that are written at once.
  public static final int MAX_SHARDS = 1024;

  private final JointFiles output;
  private final List<Part> parts;
  private final List<TfRecordWriter> writers;

  private TfRecordShards(JointFiles output, List<Part> parts, List<TfRecordWriter> writers) {
    this.output = output;
    this.parts = parts;
    this.writers = writers;
  }

  /// Writes by the process's shared session; else as [#create(Session, Path, String, int, Compression)].
  public static TfRecordShards create(
      Path folder, String name, int shards, Compression compression) {
    return create(GantrySession.shared(), folder, name, shards, compression);
  }

  /// @param folder which is made where it is missing, and those above it
  /// @param name what the files' names begin with, such as `train`
  /// @param shards how many files, up to [#MAX_SHARDS]
  /// @throws dev.gantry.core.TransferException if no file can be made in the folder
  /// @throws MisuseException if another writer of such files is at work, the folder has a set that Spark
  ///     wrote, or the name begins with a dot or has a line break
  public static TfRecordShards create(
      Session session, Path folder, String name, int shards, Compression compression) {
    MisuseException.requireGiven("folder", folder);
    MisuseException.requireGiven("name", name);
    MisuseException.requireGiven("compression", compression);
    MisuseException.requireRange("shards", shards, 1, MAX_SHARDS);
    GantrySession own = GantrySession.of(session);
    // The name may begin with a folder.
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

  /// The files' names, in order.
  public static List<Path> files(Path folder, String name, int shards) {
    MisuseException.requireGiven("folder", folder);
    MisuseException.requireGiven("name", name);
    return IntStream.range(0, shards)
        .mapToObj(i -> folder.resolve(JointFiles.numbered(name, i, shards)))
        .toList();
  }

  /// Appends a record to a shard.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails; this can only be closed then
  /// @throws MisuseException if the record is too long, or the writer is done
  public void write(int shard, MemorySegment record) {
    writers.get(Objects.checkIndex(shard, writers.size())).write(record);
  }

  /// How many records were written to a shard.
  public long records(int shard) {
    return writers.get(shard).records();
  }

  /// Gives all files their names once all of them are on the disk. Closes this, also if it fails.
  ///
  /// @throws dev.gantry.core.TransferException if one cannot be written; old files have stayed
  ///     unless the failure is of the removal of such, of a `rename` or of a folder's synchronisation after it
  public void commit() {
    try {
      TfRecordWriter.commit(writers);
      List<Path> _ = output.finish(parts);
    } finally {
      output.close();
    }
  }

  /// Removes what was written, unless it was committed.
  @Override
  public void close() {
    List<Runnable> actions = new ArrayList<>();
    writers.forEach(writer -> actions.add(writer::close));
    actions.add(output::close);
    Cleanup.runAll(actions);
  }
}
