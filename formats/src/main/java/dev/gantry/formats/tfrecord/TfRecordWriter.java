// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.MadeFolders;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import org.apache.commons.compress.compressors.deflate.DeflateCompressorOutputStream;
import org.apache.commons.compress.compressors.deflate.DeflateParameters;
import org.apache.commons.compress.compressors.gzip.GzipCompressorOutputStream;
import org.jspecify.annotations.Nullable;

/// Writes one TFRecord file, whose framing is TensorFlow's byte for byte.
///
/// ```java
/// try (TfRecordWriter writer = TfRecordWriter.create(file, Compression.NONE)) {
///   writer.write(new ExampleBuilder().int64s("label", 7).toBytes());
///   writer.commit();
/// }
/// ```
///
/// [#commit] gives the file its name when it is whole and on the disk. An old file of that name
/// is unchanged before the commit, and stays if the writer is closed without a commit. The writer
/// takes a quarter of a MiB, however long the records are. Not thread-safe.
public final class TfRecordWriter implements AutoCloseable {
  private static final int STEP_BYTES = 64 << 10;

  private final MadeFolders made;

  /// Made with the writer, so that closing it needs no heap.
  private final List<Runnable> closing;

  private final AppendedFile file;

  /// Compresses the written bytes; null without compression.
  private final @Nullable OutputStream compressor;

  private final byte[] step;
  private final ByteBuffer frame =
      ByteBuffer.allocate(Framing.HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final Framing framing = new Framing();
  private long records;
  private boolean finished;

  TfRecordWriter(GantrySession session, Path target, Compression compression) {
    made = MadeFolders.makeFor(session.folders(), target);
    closing = List.of(this::closeFile, made::takeBack);
    file = Cleanup.orUndo(() -> session.append(target), made::takeBack);
    compressor = Cleanup.orUndo(() -> compressor(file, compression), this::close);
    step = new byte[compressor == null ? 0 : STEP_BYTES];
  }

  /// Makes a writer with the process's shared session, as [#create(Session, Path, Compression)]
  /// does.
  public static TfRecordWriter create(Path file, Compression compression) {
    return create(GantrySession.shared(), file, compression);
  }

  /// @param file the path of the file; its parent folders are made if they are missing
  /// @throws dev.gantry.core.TransferException if no file can be made in the folder
  public static TfRecordWriter create(Session session, Path file, Compression compression) {
    MisuseException.requireGiven("file", file);
    MisuseException.requireGiven("compression", compression);
    return new TfRecordWriter(GantrySession.of(session), file, compression);
  }

  private static @Nullable OutputStream compressor(AppendedFile file, Compression compression) {
    OutputStream appended =
        new OutputStream() {
          @Override
          public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
          }

          @Override
          public void write(byte[] bytes, int offset, int length) {
            file.append(MemorySegment.ofArray(bytes).asSlice(offset, length));
          }
        };
    DeflateParameters zlib = new DeflateParameters();
    zlib.setWithZlibHeader(true);
    try {
      return switch (compression) {
        case NONE -> null;
        case GZIP -> new GzipCompressorOutputStream(appended);
        case ZLIB -> new DeflateCompressorOutputStream(appended, zlib);
      };
    } catch (IOException e) {
      throw impossible(e);
    }
  }

  /// Wraps an [IOException] that cannot come about, since neither a stream into memory nor one
  /// into an [AppendedFile] throws it.
  private static UncheckedIOException impossible(IOException e) {
    return new UncheckedIOException("compressor", e);
  }

  /// Appends a record.
  ///
  /// @param record host memory, up to [TfRecordOptions#MAX_RECORD_BYTES]
  /// @throws dev.gantry.core.TransferException if the disk fails; the writer can only be closed then
  /// @throws MisuseException if the record is too long, or the writer was committed or closed
  public void write(MemorySegment record) {
    MisuseException.requireGiven("record", record);
    if (record.byteSize() > TfRecordOptions.MAX_RECORD_BYTES) {
      throw new MisuseException(
          file.file()
              + ": a record must have at most "
              + TfRecordOptions.MAX_RECORD_BYTES
              + " bytes (had "
              + record.byteSize()
              + ")");
    }
    frame.clear().putLong(record.byteSize());
    int sum = framing.checksum(frame, 0, Framing.LENGTH_BYTES);
    frame.clear().putInt(Framing.LENGTH_BYTES, sum);
    append(MemorySegment.ofBuffer(frame));
    append(record);
    frame.putInt(0, Crc32c.masked(Crc32c.of(record)));
    append(MemorySegment.ofBuffer(frame).asSlice(0, Framing.CRC_BYTES));
    records++;
  }

  /// Appends a record from an array, as [#write(MemorySegment)] does.
  public void write(byte[] record) {
    write(MemorySegment.ofArray(MisuseException.requireGiven("record", record)));
  }

  private void append(MemorySegment bytes) {
    OutputStream out = compressor;
    // A finished compressor takes no bytes; its file says why.
    if (out == null || finished) {
      file.append(bytes);
      return;
    }
    try {
      for (long done = 0; done < bytes.byteSize(); done += step.length) {
        int length = (int) Math.min(step.length, bytes.byteSize() - done);
        MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, done, step, 0, length);
        out.write(step, 0, length);
      }
    } catch (IOException e) {
      throw impossible(e);
    }
  }

  /// How many records were written.
  public long records() {
    return records;
  }

  /// Gives the file its name once all of it is on the disk. Closes the writer, even if this
  /// fails.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be written. An old file is
  ///     unchanged then, unless the failure was in a `rename`, or in the folder's `fsync` after
  ///     it
  public void commit() {
    commit(List.of(this));
  }

  /// Gives the files their names once all of them are on the disk. Closes all writers, even if
  /// this fails.
  static void commit(List<TfRecordWriter> writers) {
    Cleanup.orUndo(
        () -> {
          writers.forEach(TfRecordWriter::finish);
          AppendedFile.commit(writers.stream().map(writer -> writer.file).toList());
        },
        () -> Cleanup.forEach(writers, TfRecordWriter::close));
  }

  /// Writes the bytes that the compressor still holds, and frees it.
  private void finish() {
    finished = true;
    try {
      if (compressor != null) {
        compressor.close();
      }
    } catch (IOException e) {
      throw impossible(e);
    }
  }

  /// Removes the file, and the folders that were made for it, unless the file was committed.
  @Override
  public void close() {
    Cleanup.runAll(closing);
  }

  private void closeFile() {
    try (file) {
      if (!finished) {
        // This frees the compressor's memory; the bytes that the compressor writes meanwhile are
        // removed with the file.
        finish();
      }
    } catch (MisuseException _) {
      // This is ignored: an earlier write failed, so the compressor's last bytes cannot be
      // written.
    }
  }
}
