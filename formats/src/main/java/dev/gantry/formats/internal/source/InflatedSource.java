// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.source;

import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.store.SourceFile;
import java.io.BufferedInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.LongSupplier;
import java.util.zip.Inflater;
import java.util.zip.InflaterInputStream;
import org.apache.commons.compress.compressors.gzip.GzipCompressorInputStream;
import org.jspecify.annotations.Nullable;

/// The decompressed bytes of a compressed file, from its start. If the file is damaged, the
/// source returns all bytes before the damage, and then throws.
public final class InflatedSource implements ByteSource {
  /// The largest factor by which deflate expands: 258 bytes from two bits.
  private static final long MAX_RATIO = 1032;

  private static final int STEP_BYTES = 64 << 10;
  private static final int CHUNK_BYTES = 256 << 10;

  /// The longest name and comment of a gzip header that are read.
  public static final int MAX_HEADER_BYTES = 1 << 20;

  private final SourceFile file;
  private final boolean isZlib;
  private final Inflater zlib = new Inflater();
  private final byte[] step = new byte[STEP_BYTES];
  private long given;

  /// The compressed file; null before the first read.
  private @Nullable FileStream compressed;

  /// The decompressing stream; null before the first read, and if the file does not begin as a
  /// compressed stream.
  private @Nullable InputStream inflated;

  /// Counts the bytes that [#inflated] has written into targets, those of failed reads included.
  private LongSupplier produced = () -> 0;

  private @Nullable IOException fault;
  private boolean ended;

  private InflatedSource(SourceFile file, boolean isZlib) {
    this.file = file;
    this.isZlib = isZlib;
  }

  /// Decompresses a gzip file of one or more members, one after the other.
  public static InflatedSource gzip(SourceFile file) {
    return new InflatedSource(file, false);
  }

  /// Decompresses one zlib stream.
  public static InflatedSource zlib(SourceFile file) {
    return new InflatedSource(file, true);
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
      FileStream source = compressed;
      if (source == null) {
        source = new FileStream(file);
        compressed = source;
        inflated = open(source);
      }
      InputStream stream = inflated;
      if (stream != null) {
        ended = stream.read(step, 0, wanted) < 0;
        if (ended && isZlib) {
          requireEnd(source);
        }
      }
    } catch (IOException e) {
      fault = e;
    }
    int count = (int) (produced.getAsLong() - given);
    given += count;
    return count;
  }

  /// Refuses bytes after the zlib stream, which the JDK would ignore.
  private void requireEnd(FileStream source) throws IOException {
    if (zlib.getRemaining() > 0 || source.read() >= 0) {
      throw new IOException("bytes behind the end of the zlib stream");
    }
  }

  private InputStream open(FileStream source) throws IOException {
    if (isZlib) {
      produced = zlib::getBytesWritten;
      return new InflaterInputStream(source, zlib, 8 << 10);
    }
    // The file may have several members; bytes behind the last member are refused.
    GzipCompressorInputStream gzip =
        GzipCompressorInputStream.builder()
            .setInputStream(new HeaderLimit(source))
            .setDecompressConcatenated(true)
            .get();
    produced = gzip::getBytesRead;
    return gzip;
  }

  @Override
  public long mostLeft() {
    if (ended) {
      return 0;
    }
    return file.size() > Long.MAX_VALUE / MAX_RATIO
        ? Long.MAX_VALUE
        : Math.max(0, file.size() * MAX_RATIO - given);
  }

  @Override
  public void close() {
    try (zlib;
        FileStream _ = compressed;
        InputStream _ = inflated) {
      // The resources are closed in reverse order.
    } catch (IOException e) {
      throw new UncheckedIOException("memory cannot be closed", e);
    }
  }

  /// A file as an [InputStream].
  private static final class FileStream extends InputStream {
    private final Plain source;
    private final HostSlab slab;
    private int at;
    private int end;
    private boolean closed;

    FileStream(SourceFile file) {
      this.source = new Plain(file, 0);
      this.slab = HostSlab.allocate(ByteSource.chunkBytes(file, CHUNK_BYTES));
    }

    @Override
    public int read() {
      return fill() ? Byte.toUnsignedInt(slab.segment().get(ValueLayout.JAVA_BYTE, at++)) : -1;
    }

    @Override
    public int read(byte[] target, int offset, int length) {
      if (length == 0) {
        return 0;
      }
      if (!fill()) {
        return -1;
      }
      int count = Math.min(length, end - at);
      MemorySegment.copy(slab.segment(), ValueLayout.JAVA_BYTE, at, target, offset, count);
      at += count;
      return count;
    }

    private boolean fill() {
      if (at == end) {
        int count = source.read(slab.segment());
        if (count == END) {
          return false;
        }
        at = 0;
        end = count;
      }
      return true;
    }

    @Override
    public int available() {
      return end - at;
    }

    @Override
    public void close() {
      if (!closed) {
        closed = true;
        slab.release();
      }
    }
  }

  /// Refuses gzip headers whose name and comment are too long: Commons Compress keeps them on the
  /// heap, and RFC 1952 sets no limit. Commons Compress reads headers byte by byte and compressed
  /// data in blocks, so bytes that are read one by one belong to a header or to the trailer
  /// before it.
  private static final class HeaderLimit extends FilterInputStream {
    private int single;

    HeaderLimit(InputStream compressed) {
      super(new BufferedInputStream(compressed));
    }

    @Override
    public int read() throws IOException {
      if (single == MAX_HEADER_BYTES) {
        throw new IOException(
            "the name and the comment in a gzip header have more than "
                + MAX_HEADER_BYTES
                + " bytes");
      }
      single++;
      return super.read();
    }

    @Override
    public int read(byte[] target, int offset, int length) throws IOException {
      single = 0;
      return super.read(target, offset, length);
    }
  }
}
