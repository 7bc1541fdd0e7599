package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.commit.Crc32c;
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

/// Frames records, compresses them where that is wanted, and appends them to a file. Not
/// thread-safe.
final class RecordOutput implements AutoCloseable {
  private static final int STEP_BYTES = 64 << 10;

  private final MadeFolders made;
  private final AppendedFile file;

  /// Null without compression.
  private final @Nullable OutputStream compressor;

  private final byte[] step;
  private final ByteBuffer frame =
      ByteBuffer.allocate(Framing.HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final MaskedCrc32c crc = new MaskedCrc32c();
  private long records;
  private boolean finished;

  RecordOutput(GantrySession session, Path target, Compression compression) {
    made = MadeFolders.makeFor(session.folders(), target);
    try {
      file = session.append(target);
    } catch (RuntimeException | Error failure) {
      made.takeBack(failure);
      throw failure;
    }
    boolean complete = false;
    try {
      compressor = compressor(file, compression);
      step = new byte[compressor == null ? 0 : STEP_BYTES];
      complete = true;
    } catch (IOException e) {
      throw impossible(e);
    } finally {
      if (!complete) {
        file.close();
        made.takeBack();
      }
    }
  }

  private static @Nullable OutputStream compressor(AppendedFile file, Compression compression)
      throws IOException {
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
    return switch (compression) {
      case NONE -> null;
      case GZIP -> new GzipCompressorOutputStream(appended);
      case ZLIB -> {
        DeflateParameters parameters = new DeflateParameters();
        parameters.setWithZlibHeader(true);
        yield new DeflateCompressorOutputStream(appended, parameters);
      }
    };
  }

  /// A stream into memory or a file of ours throws in our own families.
  private static UncheckedIOException impossible(IOException e) {
    return new UncheckedIOException("compressor", e);
  }

  void write(MemorySegment record) {
    if (record.byteSize() > TfRecordOptions.MOST_RECORD_BYTES) {
      throw new MisuseException(
          file.file()
              + ": a record of "
              + record.byteSize()
              + " bytes is longer than "
              + TfRecordOptions.MOST_RECORD_BYTES);
    }
    frame.clear().putLong(record.byteSize());
    int sum = crc.of(frame, 0, Framing.LENGTH_BYTES);
    frame.clear().putInt(Framing.LENGTH_BYTES, sum);
    append(MemorySegment.ofBuffer(frame));
    append(record);
    frame.putInt(0, MaskedCrc32c.mask(Crc32c.of(record)));
    append(MemorySegment.ofBuffer(frame).asSlice(0, Framing.CRC_BYTES));
    records++;
  }

  private void append(MemorySegment bytes) {
    OutputStream out = compressor;
    if (out == null) {
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

  long records() {
    return records;
  }

  /// Gives the files their names once all are on the disk. Whether or not it succeeds, all are
  /// closed.
  static void commit(List<RecordOutput> outputs) {
    try {
      outputs.forEach(RecordOutput::finish);
    } catch (RuntimeException failure) {
      for (RecordOutput output : outputs) {
        try {
          output.close();
        } catch (RuntimeException besides) {
          failure.addSuppressed(besides);
        }
      }
      throw failure;
    }
    AppendedFile.commit(outputs.stream().map(output -> output.file).toList());
  }

  /// Writes what the compressor has kept back, and ends it.
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

  /// Removes the file, unless it was committed, and the folders that were made for it alone.
  @Override
  public void close() {
    try (file) {
      if (!finished) {
        // For its memory; what it writes is removed with the file.
        finish();
      }
    } catch (MisuseException _) {
      // The file has failed before, and takes no more of it.
    }
    made.takeBack();
  }
}
