package dev.gantry.formats.tfrecord;

import dev.gantry.core.io.SourceFile;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.apache.commons.compress.compressors.deflate.DeflateCompressorInputStream;
import org.apache.commons.compress.compressors.deflate.DeflateParameters;
import org.apache.commons.compress.compressors.gzip.GzipCompressorInputStream;
import org.apache.commons.compress.utils.InputStreamStatistics;
import org.jspecify.annotations.Nullable;

/// What a compressed file decompresses to, from its start. Does not own the file.
///
/// Bytes that came before a fault are given before it is thrown.
final class InflatedSource implements ByteSource {
  /// Deflate makes no more than 258 bytes of two bits.
  private static final long MOST_RATIO = 1032;

  private static final int STEP_BYTES = 64 << 10;

  private final SourceFile file;
  private final Compression compression;
  private final byte[] step = new byte[STEP_BYTES];
  private long given;

  /// Null until the first bytes are wanted.
  private @Nullable SourceFileStream compressed;

  /// Null until then, and where the first bytes were no beginning.
  private @Nullable InputStream inflated;

  private @Nullable IOException fault;
  private boolean ended;

  InflatedSource(SourceFile file, Compression compression) {
    this.file = file;
    this.compression = compression;
  }

  @Override
  public int read(MemorySegment target) throws IOException {
    int done = 0;
    while (done < target.byteSize() && fault == null && !ended) {
      int wanted = (int) Math.min(step.length, target.byteSize() - done);
      int count = inflate(wanted);
      if (count > 0) {
        MemorySegment.copy(step, 0, target, ValueLayout.JAVA_BYTE, done, count);
        done += count;
      }
    }
    if (done > 0) {
      given += done;
      return done;
    }
    if (fault != null) {
      throw fault;
    }
    return END;
  }

  private int inflate(int wanted) {
    try {
      InputStream stream = inflated;
      if (stream == null) {
        stream = open();
        inflated = stream;
      }
      int count = stream.read(step, 0, wanted);
      if (count < 0) {
        requireAllUsed(stream);
        ended = true;
      }
      return count;
    } catch (IOException e) {
      fault = e;
      return 0;
    }
  }

  private InputStream open() throws IOException {
    compressed = new SourceFileStream(file);
    if (compression == Compression.GZIP) {
      return GzipCompressorInputStream.builder()
          .setInputStream(compressed)
          .setDecompressConcatenated(true)
          .get();
    }
    DeflateParameters parameters = new DeflateParameters();
    parameters.setWithZlibHeader(true);
    return new DeflateCompressorInputStream(compressed, parameters);
  }

  /// A zlib stream ends where it says; what follows would be passed over in silence. Of gzip, what
  /// follows is the next member, or refused.
  private void requireAllUsed(InputStream stream) throws IOException {
    if (compression == Compression.ZLIB && stream instanceof InputStreamStatistics statistics) {
      long behind = file.size() - statistics.getCompressedCount();
      if (behind > 0) {
        throw new IOException(behind + " bytes behind the end of the zlib stream");
      }
    }
  }

  @Override
  public long mostLeft() {
    if (ended) {
      return 0;
    }
    return file.size() > Long.MAX_VALUE / MOST_RATIO
        ? Long.MAX_VALUE
        : Math.max(0, file.size() * MOST_RATIO - given);
  }

  @Override
  public void close() {
    try (InputStream _ = compressed;
        InputStream _ = inflated) {
      // Closed in the reverse order, and both.
    } catch (IOException e) {
      throw new UncheckedIOException("memory cannot be closed", e);
    }
  }
}
