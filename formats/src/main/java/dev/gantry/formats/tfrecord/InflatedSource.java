package dev.gantry.formats.tfrecord;

import dev.gantry.core.internal.store.SourceFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
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
  private @Nullable InflatedStream inflated;

  private @Nullable IOException fault;
  private boolean ended;

  /// @param compression not NONE
  InflatedSource(SourceFile file, Compression compression) {
    this.file = file;
    this.compression = compression;
  }

  @Override
  public int read(MemorySegment target) throws IOException {
    int done = 0;
    while (done < target.byteSize() && fault == null && !ended) {
      int count = inflate((int) Math.min(step.length, target.byteSize() - done));
      MemorySegment.copy(step, 0, target, ValueLayout.JAVA_BYTE, done, count);
      done += count;
    }
    if (done == 0 && fault != null) {
      throw fault;
    }
    return done == 0 ? END : done;
  }

  private int inflate(int wanted) {
    try {
      InflatedStream stream = inflated;
      if (stream == null) {
        compressed = new SourceFileStream(file);
        stream = InflatedStream.of(compressed, compression);
        inflated = stream;
      }
      ended = stream.read(step, wanted) < 0;
    } catch (IOException e) {
      fault = e;
    }
    int count = inflated == null ? 0 : (int) (inflated.given() - given);
    given += count;
    return count;
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
    try (SourceFileStream _ = compressed;
        InflatedStream _ = inflated) {
      // Closed in the reverse order, and both.
    } catch (IOException e) {
      throw new UncheckedIOException("memory cannot be closed", e);
    }
  }
}
