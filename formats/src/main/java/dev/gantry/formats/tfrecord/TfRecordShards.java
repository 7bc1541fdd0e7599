package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
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

  private final List<RecordOutput> outputs;

  private TfRecordShards(List<RecordOutput> outputs) {
    this.outputs = outputs;
  }

  /// @param folder which is made where it is missing, and those above it
  /// @param name what the files' names begin with, such as `train`
  /// @param shards how many files, up to [#MOST_SHARDS]
  /// @throws dev.gantry.core.TransferException if no file can be made in the folder
  public static TfRecordShards create(
      GantrySession session, Path folder, String name, int shards, Compression compression) {
    if (shards < 1 || shards > MOST_SHARDS) {
      throw new MisuseException("shards must be 1 to " + MOST_SHARDS + ": " + shards);
    }
    List<RecordOutput> outputs = new ArrayList<>(shards);
    boolean complete = false;
    try {
      for (Path file : files(folder, name, shards)) {
        outputs.add(new RecordOutput(session, file, compression));
      }
      complete = true;
      return new TfRecordShards(outputs);
    } finally {
      if (!complete) {
        outputs.reversed().forEach(RecordOutput::close);
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
    outputs.get(Objects.checkIndex(shard, outputs.size())).write(record);
  }

  /// How many records were written to a shard.
  public long records(int shard) {
    return outputs.get(shard).records();
  }

  /// Gives all files their names once all of them are on the disk, and closes the writer, also
  /// where that fails.
  ///
  /// @throws dev.gantry.core.TransferException if one cannot be written; old files have stayed
  ///     unless the failure is of a `rename` or of a folder's synchronisation after it
  public void commit() {
    RecordOutput.commit(outputs);
  }

  /// Removes what was written, unless it was committed.
  @Override
  public void close() {
    // The first one has made the folder, and goes when nothing is in it any more.
    Cleanup.runAll(outputs.reversed().stream().<Runnable>map(output -> output::close).toList());
  }
}
