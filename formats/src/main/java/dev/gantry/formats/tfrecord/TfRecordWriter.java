package dev.gantry.formats.tfrecord;

import dev.gantry.core.internal.session.GantrySession;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;

/// Writes one TFRecord file, whose framing is TensorFlow's byte for byte.
///
/// ```java
/// try (TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
///   writer.write(new ExampleBuilder().int64s("label", 7).toBytes());
///   writer.commit();
/// }
/// ```
///
/// The file gets its name by [#commit], when it is whole and on the disk; until then, and where the
/// writer is closed without, an old file of that name stays as it was. Takes a quarter of a MiB,
/// however long the records are. Not thread-safe.
public final class TfRecordWriter implements AutoCloseable {
  private final RecordOutput output;

  private TfRecordWriter(RecordOutput output) {
    this.output = output;
  }

  /// @param file whose folder is made where it is missing, and those above it
  /// @throws dev.gantry.core.TransferException if no file can be made in the folder
  public static TfRecordWriter create(GantrySession session, Path file, Compression compression) {
    return new TfRecordWriter(new RecordOutput(session, file, compression));
  }

  /// Appends a record.
  ///
  /// @param record memory of the CPU, up to [TfRecordOptions#MOST_RECORD_BYTES]
  /// @throws dev.gantry.core.TransferException if the disk fails; there is no going on then
  /// @throws dev.gantry.core.MisuseException if the record is too long, or the writer is done
  public void write(MemorySegment record) {
    output.write(record);
  }

  public void write(byte[] record) {
    write(MemorySegment.ofArray(record));
  }

  /// How many records were written.
  public long records() {
    return output.records();
  }

  /// Gives the file its name once all of it is on the disk, and closes the writer, also where that
  /// fails.
  ///
  /// @throws dev.gantry.core.TransferException if it cannot be written; the old file has stayed
  ///     unless the failure is of a `rename` or of a folder's synchronisation after it
  public void commit() {
    RecordOutput.commit(List.of(output));
  }

  /// Removes what was written, unless it was committed.
  @Override
  public void close() {
    output.close();
  }
}
